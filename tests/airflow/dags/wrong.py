"""Tasks that cannot work, each of a kind, and one that waits for an asset's event; added to the example DAGs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset

from airflow_differential.conditions import AssetEvents, FilesExist
from airflow_differential.operators import AdvanceFrontierOperator, DifferentialRunOperator
from airflow_differential.sensors import SourceFrontierSensor

EXAMPLES = Path(__file__).resolve().parents[1]
FLIGHTS, BROKEN = str(EXAMPLES / "flights"), str(EXAMPLES / "broken")
STATE, OTHER = f"{FLIGHTS}/state/prod", str(EXAMPLES / "other")
THERE = FilesExist(FLIGHTS)

with DAG("wrong", schedule=None, start_date=None):
    SourceFrontierSensor(task_id="unknown_source", state_root=STATE, source="feed.flihgts", complete=THERE)
    SourceFrontierSensor(task_id="no_source", state_root=STATE, source="flights.daily", complete=THERE)
    SourceFrontierSensor(task_id="unreachable", state_root="/proc/there", source="feed.flights", complete=THERE)
    AdvanceFrontierOperator(task_id="no_zone", state_root=STATE, source="feed.flights", up_to="2013-12-01")
    DifferentialRunOperator(task_id="unknown_model", project_dir=FLIGHTS, target="prod", select=["dayly"])
    DifferentialRunOperator(task_id="failing", project_dir=BROKEN, target="prod")

with DAG("back", schedule=None):
    AdvanceFrontierOperator(task_id="earlier", state_root=STATE, source="feed.flights", up_to="2013-10-29T00:00:00Z")

with DAG("after_files", schedule=None):
    SourceFrontierSensor(
        task_id="complete",
        state_root=OTHER,
        source="s.t",
        complete=AssetEvents("payments_files"),
        outlets=[Asset("told")],
        poke_interval=5,
        retries=2,
        retry_delay=timedelta(seconds=1),
    )
