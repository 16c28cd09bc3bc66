"""The payments by astronomer-cosmos, which makes a task of each model and each test.

Cosmos runs dbt in a copy of the project, so the place of what is stored has to be said in full.
"""

from __future__ import annotations

import sys
from pathlib import Path

from airflow.sdk import DAG
from cosmos import DbtTaskGroup, ExecutionConfig, ProfileConfig, ProjectConfig, RenderConfig
from cosmos.constants import LoadMode

from airflow_differential.times import INTERVAL_END

PROJECT = Path(__file__).resolve().parents[1] / "payments"

with DAG("payments_with_cosmos", schedule=None, max_active_runs=1, tags=["differential"]):
    DbtTaskGroup(
        project_config=ProjectConfig(
            PROJECT,
            manifest_path=PROJECT / "target" / "manifest.json",
            env_vars={"PAYMENTS_STATE": str(PROJECT / "state" / "cosmos")},
        ),
        profile_config=ProfileConfig(
            profile_name="payments", target_name="cosmos", profiles_yml_filepath=PROJECT / "profiles.yml"
        ),
        execution_config=ExecutionConfig(dbt_executable_path=Path(sys.executable).parent / "dbt"),
        render_config=RenderConfig(load_method=LoadMode.DBT_MANIFEST),
        operator_args={"vars": {"dd_time": INTERVAL_END}},
    )
