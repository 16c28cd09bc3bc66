"""Operators call dbt and dbt-dd as they should; here commands that only say how they were called."""

from __future__ import annotations

import json
import stat
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Asset

from airflow_differential.command import CommandFailed
from airflow_differential.operators import (
    AdvanceFrontierOperator,
    CompactOperator,
    DifferentialRunOperator,
    VerifyOperator,
)
from airflow_differential.times import milliseconds

DAY = "2013-06-02T00:00:00+00:00"
RESPONSE = {"strategy": "delta", "as_of": "2013-06-02 00:00:00", "rows_added": 3, "rows_removed": 1}
FAKE = f"""#!{sys.executable}
import json, os, pathlib, sys, time
called = json.dumps([os.environ.get("SPARK_REMOTE"), os.getcwd(), sys.argv[1:], os.environ.get("DBT_DD_TIME")])
print(called, flush=True)
with open(sys.argv[0] + ".calls", "a") as calls:
    calls.write(called + "\\n")
if "--target-path" in sys.argv:
    result = {{"unique_id": "model.p.sums", "execution_time": 0.5, "adapter_response": {RESPONSE}}}
    other = {{"unique_id": "model.p.view", "execution_time": 0.1, "adapter_response": {{"code": "OK"}}}}
    target = pathlib.Path(sys.argv[sys.argv.index("--target-path") + 1])
    (target / "partial_parse.msgpack").write_text("parsed")
    (target / "run_results.json").write_text(json.dumps({{"results": [result, other]}}))
time.sleep(float(os.environ.get("SLEEP", 0)))
sys.exit(int(os.environ.get("CODE", 0)))
"""


@pytest.fixture
def fake(tmp_path: Path) -> str:
    """A command."""
    path = tmp_path / "fake"
    path.write_text(FAKE)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def calls(fake: str) -> list[Any]:
    """How it was called: the Spark remote, the folder, the arguments, the time."""
    return [json.loads(line) for line in Path(f"{fake}.calls").read_text().splitlines()]


class Events(dict[Asset, Any]):
    """A task's outlet events."""

    def __missing__(self, key: Asset) -> Any:
        self[key] = type("Event", (), {"extra": None})()
        return self[key]


def test_dbt_is_run_at_the_intervals_end(tmp_path: Path, fake: str) -> None:
    outlet, events = Asset("m.sums"), Events()
    operator = DifferentialRunOperator(
        task_id="run",
        project_dir=str(tmp_path),
        select="sums+ tag:daily",
        target="prod",
        dd_time=DAY,
        variables={"x": 1},
        full_refresh=True,
        spark_remote="sc://there",
        executable=fake,
        outlets=[outlet],
    )
    told = operator.execute({"outlet_events": events})  # type: ignore[typeddict-item]
    assert told == {"model.p.sums": {**RESPONSE, "seconds": 0.5}}
    assert events[outlet].extra == told
    ((remote, folder, arguments, at),) = calls(fake)
    assert (remote, folder, at) == ("sc://there", str(tmp_path), str(milliseconds(DAY)))
    assert json.loads(arguments[arguments.index("--vars") + 1]) == {"x": 1}
    assert arguments[-4:] == ["--select", "sums+", "tag:daily", "--full-refresh"]
    assert arguments[arguments.index("--target") + 1] == "prod"


def test_the_next_task_begins_with_what_the_last_one_has_parsed(tmp_path: Path, fake: str) -> None:
    for _ in range(2):
        operator = DifferentialRunOperator(task_id="run", project_dir=str(tmp_path), dd_time=DAY, executable=fake)
        operator.execute({"outlet_events": Events()})  # type: ignore[typeddict-item]
    first, second = (arguments for _, _, arguments, _ in calls(fake))
    assert "--partial-parse-file-path" not in first and "--vars" not in first
    kept = Path(second[second.index("--partial-parse-file-path") + 1])
    assert kept.read_text() == "parsed" and kept.is_relative_to(tmp_path)


def test_a_command_that_fails_fails_the_task(tmp_path: Path, fake: str) -> None:
    operator = VerifyOperator(task_id="verify", state_root=str(tmp_path), executable=fake, env={"CODE": "3"})
    with pytest.raises(CommandFailed, match=r"(?s)ended with 3.*verify"):
        operator.execute({})


def test_a_task_that_is_killed_ends_its_command(tmp_path: Path, fake: str) -> None:
    operator = VerifyOperator(task_id="verify", state_root=str(tmp_path), executable=fake, env={"SLEEP": "60"})
    threading.Timer(1.0, operator.on_kill).start()
    started = time.monotonic()
    with pytest.raises(CommandFailed):
        operator.execute({})
    assert time.monotonic() - started < 30


def test_compaction_and_vacuum(tmp_path: Path, fake: str) -> None:
    root = str(tmp_path)
    CompactOperator(
        task_id="compact", state_root=root, names=["m.sums"], retain_history="1 day", executable=fake
    ).execute({})
    begin = ["--state-root", root]
    assert [arguments for _, _, arguments, _ in calls(fake)] == [
        [*begin, "compact", "m.sums", "--retain-history", "1 day"],
        [*begin, "vacuum", "m.sums", "--older-than", "1 day"],
    ]


def test_a_projects_profile_says_where_collections_are(tmp_path: Path, fake: str) -> None:
    VerifyOperator(task_id="verify", project_dir="p", target="prod", executable=fake).execute({})
    assert calls(fake)[0][2] == ["--project-dir", "p", "--profiles-dir", "p", "--target", "prod", "verify"]
    with pytest.raises(ValueError, match="neither state_root nor project_dir"):
        VerifyOperator(task_id="nowhere")


def test_advancing(tmp_path: Path) -> None:
    operator = AdvanceFrontierOperator(task_id="advance", state_root=str(tmp_path), source="s.t", up_to=DAY)
    assert operator.execute({}) == {"source": "s.t", "complete_up_to": milliseconds(DAY)}
    operator.up_to = "soon"
    with pytest.raises(ValueError, match="not a time"):
        operator.execute({})


def test_wrong_commands_are_told() -> None:
    with pytest.raises(ValueError, match="run, build, test or seed"):
        DifferentialRunOperator(task_id="run", project_dir="x", command="compile")
