"""History beyond each collection's window is let go once a night, and earlier where much of it has come together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG

from airflow_differential.operators import CompactOperator, VerifyOperator
from airflow_differential.sensors import CompactionSensor

EXAMPLES = Path(__file__).resolve().parents[1]
STATE = str(EXAMPLES / "flights" / "state" / "prod")
BEGINNING = datetime(2013, 10, 28, tzinfo=UTC)
AGAIN = {"retries": 2, "retry_delay": timedelta(seconds=10)}

with DAG(
    "compaction", schedule="0 3 * * *", start_date=BEGINNING, catchup=False, default_args=AGAIN, tags=["differential"]
):
    for name in ("flights", "payments"):
        project = str(EXAMPLES / name)
        compact = CompactOperator(task_id=f"compact_{name}", project_dir=project, target="prod")
        compact >> VerifyOperator(task_id=f"verify_{name}", project_dir=project, target="prod")

with DAG(
    "compaction_of_flights",
    schedule="@continuous",
    start_date=BEGINNING,
    catchup=False,
    max_active_runs=1,
    default_args=AGAIN,
    tags=["differential"],
):
    enough = CompactionSensor(task_id="enough", state_root=STATE, collection="feed.flights", files=4, poke_interval=10)
    enough >> CompactOperator(task_id="compact", state_root=STATE, names=["feed.flights"])
