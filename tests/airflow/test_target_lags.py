"""A task group by target lags, run by a real Airflow in one process; dbt is a script that tells what it was asked."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dbt_incremental_dd.core.time import now
from tests.airflow.test_project import node, source
from tests.airflow.test_sensors import chain, stored

DAG = """
from datetime import datetime
from airflow.sdk import DAG
from airflow_differential.task_group import DifferentialTaskGroup

with DAG("lags", schedule="@continuous", max_active_runs=1, catchup=False, start_date=datetime(2013, 1, 1)) as dag:
    DifferentialTaskGroup(
        project_dir={folder!r},
        state_root={state!r},
        by_target_lag=True,
        arguments={{"executable": {dbt!r}}},
        sensing={{"poke_interval": 0.2}},
    )
if __name__ == "__main__":
    for task in dag.test().get_task_instances():
        print("ENDED", task.task_id, task.state)
"""
DBT = """#!/bin/sh
echo "RAN $DBT_DD_TIME $*"
while [ "$1" != --target-path ]; do shift; done
echo '{"results": [{"unique_id": "model.p.x", "status": "success", "adapter_response": {}}]}' > "$2/run_results.json"
"""


@pytest.mark.airflow
def test_what_is_due_runs_and_the_rest_is_skipped(tmp_path: Path) -> None:
    """``mart`` is due, and needs ``stg``. ``sums`` is not; ``new`` reads it, and has never been stored."""
    feed = {**source("t"), "schema": "s", "identifier": "t"}
    nodes = [node("stg", "source.p.feed.t"), node("mart", "model.p.stg"), node("sums"), node("new", "model.p.sums")]
    manifest = {"nodes": {one["unique_id"]: one for one in nodes}, "sources": {"source.p.feed.t": feed}}
    for path, text in (("p/target/manifest.json", json.dumps(manifest)), ("dbt", DBT)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "dbt").chmod(0o755)
    state, began = tmp_path / "state", now()
    chain(state, began, began, target_lag=2000, seconds=0.1)
    stored(state, began, target_lag="downstream")
    dag = tmp_path / "dags" / "lags.py"
    dag.parent.mkdir()
    dag.write_text(DAG.format(folder=str(tmp_path / "p"), state=str(state), dbt=str(tmp_path / "dbt")))
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(dag.parent),
    }
    for command in ([str(Path(sys.executable).parent / "airflow"), "db", "migrate"], [sys.executable, str(dag)]):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout + done.stderr
    ended = dict(re.findall(r"ENDED models\.(\w+) (\w+)", said))
    assert ended == {"due": "success", "stg": "success", "mart": "success", "sums": "skipped", "new": "success"}
    ran = re.findall(r"RAN (\d+) .*--select (\w+)", said)
    assert sorted(name for _, name in ran) == ["mart", "new", "stg"]
    (t,) = {int(t) for t, _ in ran}
    assert began + 1000 <= t <= now(), "all at the time at which they were found due"
