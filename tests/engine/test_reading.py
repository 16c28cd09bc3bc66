"""What a small change reads, by Spark's metrics and the driver's own count."""

from __future__ import annotations

import logging
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.asked import ListeningSession
from benchmarks.results import read
from dbt_incremental_dd.core.reads import Reads
from dbt_incremental_dd.trace import tiers
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_an_aggregate_reads_little_more_than_the_change(tmp_path: Path) -> None:
    """A ten-thousandth of the rows is new; a process of its own, because metrics are a session's setting."""
    command = [sys.executable, "-m", "benchmarks.floor", "--rows", "1000000", "--changed", "100", "--repeats", "3"]
    command += ["--folder", str(tmp_path / "floor"), "--json", str(tmp_path / "found.json")]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    found = read(tmp_path / "found.json")["results"]
    assert 100 <= found["read_rows"] <= 20 * 100


def test_a_change_of_columns_that_a_model_does_not_read_costs_it_nothing(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(spark, tmp_path, {"o": Table("id INT, customer INT, note STRING"), "c": Table("id INT, name STRING")})
    world.insert("o", [(i, i % 5, "old") for i in range(20)])
    world.insert("c", [(i, f"name {i}") for i in range(5)])
    world.model("m", "SELECT o.id, c.name FROM {o} o JOIN {c} c ON c.id = o.customer")
    world.step()
    world.delete("o", [(3, 3, "old"), (4, 4, "old")])
    world.insert("o", [(3, 3, "new"), (4, 4, "newer")])
    with caplog.at_level(logging.DEBUG, "dbt_incremental_dd.trace.driver_reader"):
        world.step()
    assert not [path for record in caplog.records for path in vars(record).get("paths", ()) if ".c/" in path]
    world.check()
    world.delete("o", [(3, 3, "new")])
    world.step()
    world.check()


def test_a_run_tells_the_rows_that_it_has_read_and_those_that_it_looked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = World(spark, tmp_path, {"o": Table("id INT, customer INT"), "c": Table("id INT, name STRING")})
    world.insert("o", [(i, i % 5) for i in range(20)])
    world.insert("c", [(i, f"name {i}") for i in range(5)])
    world.model("m", "SELECT o.id, c.name FROM {o} o JOIN {c} c ON c.id = o.customer")
    assert world.step()["m"].reads.rows == 25
    assert world.step()["m"].reads == Reads()
    world.insert("o", [(100, 3), (101, 3)])
    reads = world.step()["m"].reads
    assert (reads.rows, reads.found) == (2 + 5, 2 + 1) and reads.bytes > 0


def test_a_join_with_what_a_left_join_has_found_is_looked_up_through_it(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A change of the last table, whose key the middle one has: of the first, only the rows that lead there are read.
    NULL in a key, and rows without a match, are no reason to read more."""
    rng, tables = (
        random.Random(11),
        {"m": "day INT, symbol STRING", "s": "symbol STRING, cik INT", "f": "cik INT, year INT"},
    )
    world = World(spark, tmp_path, {name: Table(columns) for name, columns in tables.items()})
    world.model(
        "prices",
        "SELECT m.day, s.symbol, s.cik, f.year FROM {m} m LEFT JOIN {s} s ON s.symbol = m.symbol AND m.day > s.cik - 9"
        " LEFT JOIN {f} f ON f.cik = s.cik AND f.year = m.day + 1",
    )
    symbols = [None, *(f"s{i}" for i in range(12))]
    world.insert("m", [(day, symbol) for day in range(4) for symbol in symbols])
    world.insert("s", [(symbol, i if i % 5 else None) for i, symbol in enumerate(symbols)])
    world.step()
    for _ in range(4):
        rows = world.tables["f"].rows
        world.delete("f", rng.sample(rows, min(2, len(rows))))
        world.insert("f", [(rng.choice([None, *range(12)]), rng.randrange(5)) for _ in range(4)])
        caplog.clear()
        with caplog.at_level(logging.DEBUG, "dbt_incremental_dd.trace.driver_reader"):
            world.step()
        read = [vars(record) for record in caplog.records]
        assert all(one["wanted"] for one in read if any(".m/" in path for path in one.get("paths", ())))
        world.check()
    world.insert("s", [("s3", 4), ("s1", None)])
    world.delete("m", world.tables["m"].rows[::3])
    world.step()
    world.check()


def test_states_stay_in_proportion_to_rows_that_change_each_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "_FEW", 10)
    world = World(spark, tmp_path, {"t": Table("k INT, v INT")})
    world.insert("t", [(k, k) for k in range(40)])
    world.model("m", "SELECT k, sum(v) AS v, max(v) AS most FROM {t} GROUP BY k")
    world.step()
    for _ in range(12):
        rows = world.tables["t"].rows[:]
        world.delete("t", rows)
        world.insert("t", [(k, v + 1) for k, v in rows])
        world.step()
        inner = world.storage.collection(f"{world.schema}.m")
        for state in ("reduce1.sums", "reduce1.values"):
            log = inner.inner(state).log()
            assert log is not None and sum(file.rows for file in log.files) <= 5 * 40
    world.check()


def test_what_one_model_has_found_by_key_the_next_one_does_not_read(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(spark, tmp_path, {"o": Table("id INT, customer INT"), "c": Table("id INT, name STRING")})
    world.insert("o", [(i, i % 5) for i in range(20)])
    world.insert("c", [(i, f"name {i}") for i in range(5)])
    world.model("a", "SELECT o.id, c.name FROM {o} o JOIN {c} c ON c.id = o.customer")
    world.model("b", "SELECT c.name, count(*) AS n FROM {o} o JOIN {c} c ON c.id = o.customer GROUP BY c.name")
    world.step()
    world.insert("o", [(100, 3), (101, 4)])
    with caplog.at_level(logging.DEBUG, "dbt_incremental_dd.trace.driver_reader"):
        world.step()
    read = [vars(record) for record in caplog.records if any(".c/" in path for path in vars(record).get("paths", ()))]
    assert [record["wanted"] for record in read] == [{"id": [3, 4]}]
    world.check()


def test_a_window_reads_nothing_below_it_that_has_not_changed(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor is a function of it asked of Spark, which alone knows it."""
    world = World(spark, tmp_path, {"o": Table("id INT, k INT, v INT"), "x": Table("line STRING")})
    world.insert("o", [(i, i % 3, i) for i in range(9)])
    world.insert("x", [(f"<a k='{k}'>{v}</a>",) for k in range(3) for v in (100, 200)])
    lines = (
        "SELECT 0 AS id, CAST(xpath_string(line, 'a/@k') AS INT) AS k, CAST(xpath_string(line, 'a') AS INT) FROM {x}"
    )
    world.model(
        "m", f"SELECT id, k, sum(v) OVER (PARTITION BY k ORDER BY v, id) AS s FROM (TABLE {{o}} UNION ALL {lines})"
    )
    world.step()
    world.insert("o", [(100, 1, 50), (101, 2, 300)])
    world.delete("o", [(4, 1, 4)])
    session, asked = ListeningSession(spark), list[str]()
    with caplog.at_level(logging.DEBUG, "dbt_incremental_dd.trace.driver_reader"):
        assert not world.step_and_check_each(lambda name: asked.extend(session.asked), session=session)
    assert not [path for record in caplog.records for path in vars(record).get("paths", ()) if ".x/" in path]
    assert not asked
    world.check()
    world.insert("x", [("<a k='1'>150</a>",)])
    world.step()
    world.check()
