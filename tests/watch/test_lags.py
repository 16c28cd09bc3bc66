"""Models that promise a target lag, in a project that is watched. Small data needs no Spark session."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from dbt_incremental_dd.api import Database
from dbt_incremental_dd.cli import main
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.target_lag import parse_target_lag
from dbt_incremental_dd.core.time import now
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.watched import Promise, note_promise, promise, seen
from dbt_incremental_dd.watch import watcher
from dbt_incremental_dd.watch.alerts import Alerts, LagEvent
from dbt_incremental_dd.watch.graph import WatchedModel
from dbt_incremental_dd.watch.lags import Lags
from dbt_incremental_dd.watch.project import ModelResult
from dbt_incremental_dd.watch.project import Project as Warm
from dbt_incremental_dd.watch.promises import Promises
from dbt_incremental_dd.watch.watcher import Intervals, WatchedProject, watch
from tests.dbt.project import Project

SOURCES = """
version: 2
sources:
  - name: raw
    schema: {schema}_raw
    tables:
      - name: a
        columns: [{{name: k, data_type: bigint}}, {{name: v, data_type: bigint}}]
        config: {{meta: {{differential: {{envelope: append, path: in/a, format: json}}}}}}
      - name: b
        columns: [{{name: k, data_type: bigint}}]
        config: {{meta: {{differential: {{envelope: append, path: in/b, format: json}}}}}}
"""
ROW = {"k": 1, "v": 1}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """``stg`` is run when somebody needs it: ``mart`` every 5 seconds, ``report`` every hour. ``direct`` runs at once,
    and ``idle`` is needed by nobody."""
    made = Project(tmp_path, state_root=str(tmp_path / "state"), threads=1)
    made.write("models/sources.yml", SOURCES.format(schema=made.schema))
    config = "{{ config(target_lag='%s') }} "
    made.write("models/stg.sql", config % "downstream" + "select k, v from {{ source('raw', 'a') }} where v > 0")
    made.write("models/mart.sql", config % "5 seconds" + "select k, sum(v) as v from {{ ref('stg') }} group by k")
    made.write("models/report.sql", config % "1 hour" + "select count(*) as n from {{ ref('stg') }}")
    made.write("models/direct.sql", "select k from {{ source('raw', 'b') }}")
    made.write("models/idle.sql", config % "downstream" + "select k from {{ source('raw', 'a') }}")
    made.records("in/a/1.json", [ROW])
    made.records("in/b/1.json", [{"k": 1}])
    return made


def watched(project: Project, told: list[str], **given: Any) -> WatchedProject:
    return WatchedProject(Warm(str(project.folder), str(project.folder)), told.append, **given)


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.02)


def rows(project: Project, name: str) -> list[tuple[Any, ...]]:
    found = Database(str(project.folder / "state"))[f"{project.schema}.{name}"].as_of()
    return sorted(tuple(row.values())[:-1] for row in found.to_pylist())


def test_runs_take_place_when_they_are_due(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watcher, "_PROJECT_POLL_SECONDS", 0.2)
    told: list[str] = []
    stop = threading.Event()
    one = watched(project, told, intervals=Intervals(every=0.5, compaction=0))
    thread = threading.Thread(target=watch, args=([one], stop))
    thread.start()
    try:
        until(lambda: len(told) == 1)
        database, schema = Database(str(project.folder / "state")), project.schema
        came = now()
        for i in range(2, 5):
            project.records(f"in/a/{i}.json", [ROW])
            time.sleep(0.1)
        time.sleep(0.4)
        assert rows(project, "mart") == [(1, 1)] and rows(project, "idle") == [(1,)]
        project.records("in/b/2.json", [{"k": 2}])
        until(lambda: rows(project, "direct") == [(1,), (2,)])
        assert rows(project, "mart") == [(1, 1)], "what runs at once leaves it as it is"
        fresh = database.freshness()[f"{schema}.mart"]
        assert fresh.behind_since is not None and abs(fresh.behind_since - came) < 1000
        until(lambda: rows(project, "mart") == [(1, 4)])
        done = now()
        until(lambda: "mart" in told[-1])
        assert done - came <= 5500 and "due: mart:" in told[-1] and "report" not in told[-1] and "idle" not in told[-1]
        assert rows(project, "report") == [(1,)] and rows(project, "idle") == [(1,)]
        fresh = database.freshness()[f"{schema}.report"]
        assert (
            fresh.behind_since is not None and abs(fresh.behind_since - came) < 1000 and not fresh.missed_since(now())
        )
        assert database.freshness()[f"{schema}.mart"].behind_since is None
        assert f"{schema}.direct" not in database.freshness()
        until(lambda: promise(database.storage.collection(f"{schema}.mart")) is not None)

        runs = len(told)
        project.write(
            "models/report.sql", "{{ config(target_lag='2 hours') }} select count(*) as n from {{ ref('stg') }}"
        )
        until(lambda: database.freshness()[f"{schema}.report"].target_lag == 7_200_000)
        assert rows(project, "report") == [(4,)], "a changed project is run as a whole"
        change = database[f"{schema}.report"].status().change
        assert change["strategy"] == "delta", "a changed target lag rebuilds nothing"
        assert len(told) <= runs + 1
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive() and not [line for line in told if "FAILED" in line]

    capsys.readouterr()
    assert main(["status", "--state-root", str(project.folder / "state")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("target lag  lag  promise")
    (mart,) = (line for line in lines if line.startswith(f"{schema}.mart "))
    assert "5 seconds" in mart and "kept since" in mart
    assert main(["status", "--json", "--state-root", str(project.folder / "state")]) == 0
    found = {row["collection"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert found[f"{schema}.mart"]["target_lag"] == 5000 and found[f"{schema}.mart"]["freshness"]["promise"] == "kept"
    assert found[f"{schema}.stg"]["freshness"]["promise"] is None and found[f"{schema}.direct"]["freshness"] is None


MANAGED = """
version: 2
sources:
  - name: gate
    schema: {schema}_gate
    tables:
      - name: c
        columns: [{{name: k, data_type: bigint}}]
        config: {{meta: {{differential: {{envelope: append, path: in/c, format: json, frontier: managed}}}}}}
"""


def test_what_fails_or_is_held_back_is_not_run_all_the_time(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source whose frontier nobody has advanced fails; later it has news that are not final."""
    monkeypatch.setattr(watcher, "_RETRY_SECONDS", 1.0)
    project.write("models/gate.yml", MANAGED.format(schema=project.schema))
    project.write("models/gated.sql", "{{ config(target_lag='1 second') }} select k from {{ source('gate', 'c') }}")
    project.records("in/c/1.json", [{"k": 1}])
    told: list[str] = []
    one = watched(project, told, intervals=Intervals(every=0, compaction=0))
    one.begin()
    try:
        assert "FAILED" in told[-1] and "nobody has advanced it" in told[-1]
        assert not one.step(), "it waits before it is tried again"
        project.records("in/b/2.json", [{"k": 2}])
        assert one.step() and rows(project, "direct") == [(1,), (2,)]
        failures = len(told)
        until(one.step, 5)
        assert len(told) == failures + 1 and "FAILED" in told[-1]
        database, name = Database(str(project.folder / "state")), f"{project.schema}.gated"
        database.advance(f"{project.schema}_gate.c", now(), first=True)
        until(lambda: one.step() and rows(project, "gated") == [(1,)], 5)
        project.records("in/c/2.json", [{"k": 2}])
        until(one.step, 5)
        assert rows(project, "gated") == [(1,)]
        assert (fresh := database[name].freshness()) is not None and fresh.behind_since is None, "it is not final"
        quiet = time.monotonic() + 1.5
        while time.monotonic() < quiet:
            assert not one.step()
            time.sleep(0.02)
        database.advance(f"{project.schema}_gate.c", now())
        until(lambda: one.step() and rows(project, "gated") == [(1,), (2,)], 5)
    finally:
        one.close()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("soon", "is no interval"),
        ("5 fortnights", "is no interval"),
        ("0 minutes", "must be above zero"),
        ("-5 minutes", "is negative"),
        ("300", "has no unit"),
    ],
)
def test_lags_that_are_none(value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"model m\.a: target_lag is .*{message}"):
        parse_target_lag("m.a", value)


def test_a_project_with_a_lag_that_is_none(project: Project) -> None:
    """A run tells of a differential model, and a watch does not even begin."""
    project.write("models/mart.sql", "{{ config(target_lag='soon') }} select k from {{ ref('stg') }}")
    message = f"model {project.schema}.mart: target_lag is 'soon', which is no interval"
    with pytest.raises(ConfigError, match=message):
        watched(project, []).begin()
    assert message in project.dbt("run", "--select", "mart", fails=True)["mart"]


class Hook(BaseHTTPRequestHandler):
    """Keeps what it is sent; the first request fails."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        received = self.server.received  # type: ignore[attr-defined]
        received.append((dict(self.headers), body))
        self.send_response(503 if len(received) == 1 else 204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def hook() -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    server = HTTPServer(("127.0.0.1", 0), Hook)
    received: list[tuple[dict[str, str], bytes]] = []
    server.received = received  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/lag?a=b", received
    finally:
        server.shutdown()


def test_a_missed_lag_is_told_once_and_so_is_its_end(project: Project, tmp_path: Path) -> None:
    """Of files alone: the project is run by hand."""
    project.dbt("run")
    storage = Database(str(project.folder / "state")).storage
    name, script = f"{project.schema}.mart", tmp_path / "hook.py"
    script.write_text(
        "import os, sys\n"
        "names = ('DBT_DD_MODEL', 'DBT_DD_STATE', 'DBT_DD_TARGET_LAG', 'DBT_DD_LAG', 'DBT_DD_SINCE')\n"
        "with open(sys.argv[1], 'a') as out: print(*[os.environ[name] for name in names], sys.stdin.read(), file=out)\n"
        "sys.exit('; touch x' not in sys.argv)\n"
    )
    command = f"{sys.executable} {script} {tmp_path / 'told'} '; touch x' $HOME"
    secret = "whsec_" + base64.b64encode(b"key").decode()
    told: list[str] = []
    with hook() as (url, received):
        kept = Promises(storage, (name,), told.append, Alerts.of(command, url, secret))
        t = now()
        kept.check(t)
        assert not told and promise(storage.collection(name)) == Promise("kept", t)
        project.records("in/a/2.json", [ROW])
        project.dbt("run", "--select", "stg")  # it has taken the change in
        came = Database(str(storage.root))[name].freshness()
        assert came is not None and came.behind_since is not None and came.behind_since >= t
        assert kept.check(came.behind_since + 5000) == came.behind_since + 5001
        assert not told
        for seconds in (6, 7):
            kept.check(came.behind_since + seconds * 1000)
        missed = came.behind_since + 5000
        assert promise(storage.collection(name)) == Promise("missed", missed)
        Promises(storage, (name,), told.append, Alerts.of(command, url, secret)).check(missed + 9000)
        project.dbt("run")
        kept.check(missed + 10_000)
        kept.check(missed + 11_000)
    assert promise(storage.collection(name)) == Promise("kept", missed + 10_000)
    lines = (tmp_path / "told").read_text().splitlines()
    assert [line.split(" ", 5)[:5] for line in lines] == [
        [name, "missed", "5000", "6000", str(missed)],
        [name, "kept", "5000", "0", str(missed + 10_000)],
    ]
    event = json.loads(lines[0].split(" ", 5)[5])
    assert event == {"type": "lag.missed", "model": name, "target_lag": 5000, "lag": 6000, "since": missed}
    assert not (tmp_path / "x").exists() and len(told) == 2 and "MISSED" in told[0] and "kept again" in told[1]
    assert [json.loads(body)["type"] for _, body in received] == ["lag.missed", "lag.missed", "lag.kept"]
    for headers, body in received:
        found = {key.lower(): value for key, value in headers.items()}
        signed = f"{found['webhook-id']}.{found['webhook-timestamp']}.".encode() + body
        digest = base64.b64encode(hmac.digest(b"key", signed, hashlib.sha256)).decode()
        assert found["webhook-signature"] == f"v1,{digest}"


def test_a_hook_that_fails_is_told_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    event = LagEvent("m.a", 1000, 2000, Promise("missed", 5))
    code = "import sys; print('no; way', file=sys.stderr); sys.exit(3)"
    (failure,) = Alerts.of(f'{sys.executable} -c "{code}"', None, "").tell(event)
    assert failure.endswith("ended with status 3: no; way")
    (failure,) = Alerts.of("/no/such/program", None, "").tell(event)
    assert "cannot be run" in failure
    monkeypatch.setattr("dbt_incremental_dd.watch.alerts._SECONDS", 0.3)
    (failure,) = Alerts.of(f"{sys.executable} -c 'import time; time.sleep(60)'", None, "").tell(event)
    assert "was ended after 0.3 seconds" in failure
    monkeypatch.setattr("dbt_incremental_dd.watch.alerts._ATTEMPTS", 1)
    (failure,) = Alerts.of(None, "http://user:token@127.0.0.1:1/secret", "").tell(event)
    assert failure.startswith("127.0.0.1:1 was not told") and "secret" not in failure and "token" not in failure
    for command, url, secret in (
        ("", None, ""),
        ("a 'b", None, ""),
        (None, "ftp://x", ""),
        (None, "http://x", "whsec_?"),
    ):
        with pytest.raises(ConfigError):
            Alerts.of(command, url, secret)


def test_notes_that_are_damaged_count_as_none(project: Project) -> None:
    project.dbt("run", "--select", "stg", "mart")
    database = Database(str(project.folder / "state"))
    name = f"{project.schema}.mart"
    note_promise(database.storage.collection(name), Promise("kept", 7))
    assert (fresh := database[name].freshness()) is not None and fresh.kept_since == 7
    for collection in (name, f"{project.schema}_raw.a"):
        for note in ("seen.json", "promise.json"):
            (project.folder / "state/collections" / collection / note).write_text('{"half":')
    assert (fresh := database[name].freshness()) is not None and fresh.kept_since is None and fresh.lag(now()) == 0


def test_a_table_is_scheduled_beside_collections(tmp_path: Path) -> None:
    """By what its runs take. It is nowhere stored up to when it was brought: that it has been run is known."""
    source = parse_source("raw.a", "raw.a", {"envelope": "append", "path": "a", "format": "json"}, {"k": "bigint"}, "")
    models = {
        "stg": WatchedModel("m.stg", "p.stg", ("a",), "downstream", is_stored=True),
        "wide": WatchedModel("m.wide", "p.wide", ("stg",), 60_000, is_stored=False),
    }
    lags = Lags(Storage(str(tmp_path)), models, {"a": source}, retry=15_000)
    lags.ran(models, 1000, 20.0, [ModelResult("wide", 0, 0, "wide", 4.0), ModelResult("stg", 5, 0, "stg", 16.0)], set(),
             is_usual=False)  # fmt: skip
    assert lags.due(10_000) == ((), (), None)
    lags.note("a", 20_000, 19_000)
    lags.note("a", 30_000, 29_000)
    assert lags.due(30_000) == ((), (), 19_000 + 60_000 - 2 * 4000), "the build of stg is no measure"
    assert lags.due(71_000).models == ("stg", "wide") and lags.read_by(["wide"]) == {"a"}
    lags.ran(["stg", "wide"], 71_000, 3.0, [], {"wide"})
    assert lags.failed == ["stg", "wide"] and lags.due(72_000).models == ()
    assert lags.due(71_000 + 3000 + 15_000).models == ("wide",)
    lags.ran(["wide"], 90_000, 5.0, [ModelResult("wide", 0, 0, "wide", 4.5)], set())
    assert lags.failed == [] and lags.due(10**6) == ((), (), None)
    lags.note("a", 100_000, 99_000)
    assert lags.due(100_000).at == 99_000 + 60_000 - 2 * (4500 + 500), "with what runs take beside their models"
    assert [tuple(one) for one in seen(Storage(str(tmp_path)).collection("raw.a"))] == [(99_000, 99_000)]
