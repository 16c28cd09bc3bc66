"""The flights of 2013, day by day: each day's models once its data is complete.

Each day runs once, in order, when it is switched on; a later ``end_date`` replays more of the year. A backfill works
whether the days' files come one by one or are all there: records wait for their day. A day that is cleared and run
again gives the same rows.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, CronDataIntervalTimetable, task

from airflow_differential.assets import watched
from airflow_differential.conditions import FilesExist
from airflow_differential.operators import DifferentialRunOperator
from airflow_differential.sensors import CollectionFrontierSensor, SourceFrontierSensor

EXAMPLES = Path(__file__).resolve().parents[1]
PROJECT = str(EXAMPLES / "flights")
STATE = f"{PROJECT}/state/prod"
DAY = "{{ data_interval_start | ds }}"
# Every task may run again: a run that was cut short is continued, and one that is repeated changes nothing. Airflow
# itself fails tasks now and then, such as one that is resumed before its deferral has been noted.
AGAIN = {"retries": 2, "retry_delay": timedelta(seconds=10)}

with DAG(
    "flights",
    description=__doc__,
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=datetime(2013, 10, 28, tzinfo=UTC),
    end_date=datetime(2013, 11, 2, tzinfo=UTC),
    catchup=True,
    # Each task waits for its own of the day before; a day that is cleared does not wait for one that waits for data.
    default_args={"depends_on_past": True, **AGAIN},
    tags=["differential"],
):
    complete = SourceFrontierSensor(
        task_id="flights_complete",
        state_root=STATE,
        source="feed.flights",
        complete=FilesExist(f"{PROJECT}/data/flights/{DAY}.parquet"),
        poke_interval=5,
    )
    # dbt drops a seed's table and makes it again: not while the models of the day before may read it.
    seeds = DifferentialRunOperator(
        task_id="seeds", project_dir=PROJECT, target="prod", command="seed", wait_for_downstream=True
    )
    models = DifferentialRunOperator(task_id="models", project_dir=PROJECT, target="prod")
    reached = CollectionFrontierSensor(task_id="reached", state_root=STATE, collection="flights.daily", poke_interval=5)
    [complete, seeds] >> models >> reached

# What the airline would do: each day's files, written when the day is over.
with DAG(
    "flights_feed",
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=datetime(2013, 10, 28, tzinfo=UTC),
    end_date=datetime(2013, 11, 2, tzinfo=UTC),
    catchup=True,
    max_active_runs=1,
    default_args=AGAIN,
    tags=["differential"],
):
    BashOperator(task_id="arrive", bash_command=f"'{sys.executable}' '{EXAMPLES}/feed.py' flights --until {DAY}")

# Started whenever the days' totals have moved, whoever has run them.
with DAG(
    "flights_moved",
    schedule=[watched("flights.daily", STATE)],
    max_active_runs=1,
    default_args=AGAIN,
    tags=["differential"],
):

    @task
    def latest() -> dict[str, str]:
        """The latest day, without Spark."""
        import dbt_incremental_dd

        days = dbt_incremental_dd.open(STATE)["flights.daily"].as_of().sort_by("flight_date").to_pylist()
        return {name: str(value) for name, value in days[-1].items()}

    latest()
