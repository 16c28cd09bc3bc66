"""Models follow their sources, whatever happens to either; on the suite's Spark session."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.api import Database
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.watch import watcher
from dbt_incremental_dd.watch.project import Project as Warm
from dbt_incremental_dd.watch.watcher import Intervals, WatchedProject, watch
from tests.dbt.project import Project, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
        columns: [{{name: k, data_type: bigint}}, {{name: w, data_type: string}}]
        config: {{meta: {{differential: {{envelope: append, path: in/b.jsonl, format: json}}}}}}
      - name: unread
        columns: [{{name: k, data_type: bigint}}]
        config: {{meta: {{differential: {{envelope: append, path: in/unread, format: json}}}}}}
"""


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path) -> Project:
    """Sums of a; rows of b; both joined; and one that reads b alone."""
    made = Project(tmp_path, state_root=str(tmp_path / "state"))
    made.write("models/sources.yml", SOURCES.format(schema=made.schema))
    made.write("models/sums.sql", "select k, sum(v) as v from {{ source('raw', 'a') }} group by k")
    made.write("models/words.sql", "select k, w from {{ source('raw', 'b') }}")
    made.write("models/both.sql", "select k, v, w from {{ ref('sums') }} join {{ ref('words') }} using (k)")
    made.write("models/count_b.sql", "select count(*) as n from {{ source('raw', 'b') }}")
    made.records("in/a/1.json", [{"k": 1, "v": 1}, {"k": 2, "v": 2}])
    made.records("in/b.jsonl", [{"k": 1, "w": "one"}])
    return made


def warm(project: Project) -> Warm:
    return Warm(str(project.folder), str(project.folder))


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.05)


def test_what_a_change_concerns(project: Project) -> None:
    found = warm(project)
    found.parse()
    sources = found.sources()
    assert sorted(name.split(".")[-1] for name in sources) == ["a", "b"]
    a, b = sorted(sources)
    assert found.affected([b]) == ["p.both", "p.count_b", "p.sums", "p.words"]
    assert found.affected([a]) == ["p.both", "p.sums", "p.words"]
    project.write("models/both.sql", "select k from {{ ref('words') }}")
    found.parse()
    assert found.affected([a]) == ["p.sums"] and found.affected([b]) == ["p.both", "p.count_b", "p.words"]


def test_models_follow_their_sources(project: Project, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "_RETRY_SECONDS", 0.5)
    monkeypatch.setattr(watcher, "_PROJECT_POLL_SECONDS", 0.2)
    told: list[str] = []
    stop = threading.Event()
    watched = WatchedProject(warm(project), told.append, Intervals(every=0, compaction=0))
    thread = threading.Thread(target=watch, args=([watched], stop))
    thread.start()
    try:
        until(lambda: len(told) == 1)
        assert rows(spark, project, "both") == [(1, 1, "one")]
        project.records("in/a/2.json", [{"k": 1, "v": 10}])
        until(lambda: len(told) == 2)
        assert "sums +1 -1" in told[1] and "both +1 -1" in told[1] and "count_b" not in told[1]
        assert rows(spark, project, "both") == [(1, 11, "one")]
        project.records("in/unread/1.json", [{"k": 1}])
        with (project.folder / "in/b.jsonl").open("a") as out:
            out.write('{"k": 2, "w": "tw')
            out.flush()
            time.sleep(0.5)
            out.write('o"}\n')
        until(lambda: len(told) == 3)
        assert rows(spark, project, "both") == [(1, 11, "one"), (2, 2, "two")]
        assert rows(spark, project, "count_b") == [(2,)]

        project.write("in/a/3.json", "this is no JSON\n")
        until(lambda: "FAILED" in told[-1])
        assert "3.json" in told[-1] or f"{project.schema}_raw.a" in told[-1]
        with (project.folder / "in/b.jsonl").open("a") as out:
            out.write('{"k": 3, "w": "three"}\n')
        until(lambda: rows(spark, project, "count_b") == [(3,)])
        (project.folder / "in/a/3.json").unlink()
        project.records("in/a/4.json", [{"k": 3, "v": 3}])
        until(lambda: rows(spark, project, "both") == [(1, 11, "one"), (2, 2, "two"), (3, 3, "three")])

        project.write("models/count_b.sql", "select count(*) + 100 as n from {{ source('raw', 'b') }}")
        until(lambda: rows(spark, project, "count_b") == [(103,)])
        project.write("models/more.sql", "select max(v) as v from {{ ref('sums') }}")
        until(lambda: any("more +1" in line for line in told))
        project.write("models/more.sql", "select max(v) as v from {{ ref('nosuch') }}")
        until(lambda: "nosuch" in told[-1])
        project.write("models/more.sql", "select min(v) as v from {{ ref('sums') }}")
        until(lambda: rows(spark, project, "more") == [(2,)])
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()


def test_everything_runs_also_without_news(project: Project) -> None:
    told: list[str] = []
    watched = WatchedProject(warm(project), told.append, Intervals(every=0.2, compaction=0))
    watched.begin()
    runs: list[object] = []
    watched.project.run = lambda select=None: runs.append(select) or []  # type: ignore[method-assign,func-returns-value]
    assert not watched.step()
    time.sleep(0.3)
    assert watched.step() and not watched.step() and runs == [None]
    assert len(told) == 1


def test_it_compacts_with_the_session_that_the_profile_names(spark: SparkSession, tmp_path: Path) -> None:
    """History beyond the window is forgotten; the session is opened as by a run, with the profile's settings."""
    parameters = {"spark.sql.shuffle.partitions": "2", "spark.dd.told": "yes"}
    made = Project(tmp_path, state_root="state", server_side_parameters=parameters)
    made.write("models/sources.yml", SOURCES.format(schema=made.schema))
    made.write("models/sums.sql", "{{ config(retain_history='0 s') }} select sum(v) as v from {{ source('raw', 'a') }}")
    told: list[str] = []
    watched = WatchedProject(warm(made), told.append, Intervals(every=0, compaction=0.2))
    made.records("in/a/1.json", [{"k": 1, "v": 1}])
    watched.begin()
    made.records("in/a/2.json", [{"k": 1, "v": 2}])
    assert watched.step()
    spark.conf.unset("spark.dd.told")
    until(watched.step)
    assert [line for line in told if "FAILED" in line] == []
    found = {status.name: status for status in Database(str(tmp_path / "state")).status()}[f"{made.schema}.sums"]
    assert found.since == found.upper - 1
    assert spark.conf.get("spark.dd.told") == "yes"


def test_snapshots_follow_too(project: Project) -> None:
    project.write(
        "snapshots/kept.yml",
        "snapshots: [{name: kept, relation: ref('sums'), config: {unique_key: k, strategy: check, check_cols: all}}]",
    )
    project.write("models/versions.sql", "select k, count(*) as n from {{ ref('kept') }} group by k")
    found = warm(project)
    found.parse()
    (a,) = (name for name in found.sources() if name.endswith(".a"))
    assert {name.split(".")[-1] for name in found.affected([a])} == {"both", "kept", "sums", "versions", "words"}
    found.run()
    project.records("in/a/2.json", [{"k": 1, "v": 5}])
    assert {one.name: (one.rows_added, one.rows_removed) for one in found.run(found.affected([a]))} == {
        "both": (1, 1),
        "kept": (2, 1),
        "sums": (1, 1),
        "versions": (1, 1),
        "words": (0, 0),
    }


def test_some_of_the_models(project: Project) -> None:
    found = Warm(str(project.folder), str(project.folder), select=["+sums", "count_b"], exclude=["count_b"])
    found.parse()
    (a,) = found.sources()
    assert found.affected([a]) == ["p.sums"]
    assert [ran.name for ran in found.run()] == ["sums"]
    with pytest.raises(ConfigError, match="nothing of the project"):
        Warm(str(project.folder), str(project.folder), select=["nosuch"]).parse()


def test_a_project_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be parsed"):
        WatchedProject(Warm(str(tmp_path), str(tmp_path))).begin()
