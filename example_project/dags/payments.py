"""Payments as they come: when files have arrived the models run, and what they advance starts a report."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, Asset, task

from airflow_differential.assets import asset
from airflow_differential.task_group import DifferentialTaskGroup

EXAMPLES = Path(__file__).resolve().parents[1]
PROJECT = str(EXAMPLES / "payments")
STATE = f"{PROJECT}/state/prod"
FILES = Asset("payments_files")
CAPTURED = "payments.captured_by_merchant"
AGAIN = {"retries": 2, "retry_delay": timedelta(seconds=10)}

# The shop's database, whose changes a connector writes to files.
with DAG(
    "payments_feed",
    schedule=timedelta(minutes=10),
    catchup=False,
    max_active_runs=1,
    default_args=AGAIN,
    tags=["differential"],
):
    BashOperator(task_id="arrive", bash_command=f"'{sys.executable}' '{EXAMPLES}/feed.py' payments", outlets=[FILES])

with DAG(
    "payments", description=__doc__, schedule=[FILES], max_active_runs=1, default_args=AGAIN, tags=["differential"]
):
    DifferentialTaskGroup(project_dir=PROJECT, state_root=STATE, with_tests=True, arguments={"target": "prod"})

with DAG("payments_report", schedule=[asset(CAPTURED)], max_active_runs=1, default_args=AGAIN, tags=["differential"]):

    @task
    def largest() -> list[dict[str, object]]:
        """The merchants with the largest sums, without Spark."""
        import dbt_incremental_dd

        captured = dbt_incremental_dd.open(STATE)[CAPTURED].as_of()
        return [
            {"merchant": row["merchant"], "captured": str(row["captured"])}
            for row in captured.sort_by([("captured", "descending")]).slice(0, 5).to_pylist()
        ]

    largest()
