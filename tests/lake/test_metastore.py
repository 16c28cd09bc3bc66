"""A name for an open table in a metastore of others: a Delta table that a session without this project reads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.runtime import model
from tests.lake.conftest import DELTA, VERSION, _jars
from tests.open_table.readers import Rows, rows_of
from tests.open_table.test_models import Models

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.lake, pytest.mark.skipif(VERSION == "4.1", reason="Delta's connector is of Spark 4.2")]


class PlainSession:
    """It runs for a whole test, as engines do that keep what they know of a table."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def sql(self, statement: str) -> pa.Table:
        """What Spark answers. Raises ValueError with its error."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{statement}\n")
        self._process.stdin.flush()
        kind, _, told = self._process.stdout.readline().strip().partition(" ")
        if kind != "rows":
            raise ValueError(told)
        with pa.OSFile(told) as file:
            return pa.ipc.open_file(file).read_all()

    def rows(self, name: str) -> Rows:
        """Those of a table by its name."""
        return rows_of(self.sql(f"SELECT * FROM {name}"))


@contextmanager
def plain_session(folder: Path) -> Iterator[PlainSession]:
    """Ended at the end."""
    folder.mkdir()
    program = [sys.executable, str(Path(__file__).with_name("plain_session.py")), str(folder), _jars(DELTA)]
    process = subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield PlainSession(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)


def test_a_name_shows_the_rows_of_each_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = Models(spark, tmp_path / "state", 5, Thresholds(), "delta", "rows", "sums")
    rounds.step()
    uris = {name: rounds.collection(name).place.table_uri for name in ("rows", "sums")}

    def check() -> None:
        rounds.world.check()
        for name in uris:
            assert other.rows(name) == rounds.contents(name, rounds.world.time), (name, rounds.world.time)

    with plain_session(tmp_path / "other") as other:
        for name, uri in uris.items():
            other.sql(f"CREATE TABLE {name} USING delta LOCATION '{uri}'")
        check()
        assert _versions(uris) == {name: [0] for name in uris}, "a name is no change"
        for _ in range(5):
            rounds.step()
            check()
        (detail,) = other.sql("DESCRIBE DETAIL rows").to_pylist()
        assert (detail["format"], detail["location"]) == ("delta", f"file:{uris['rows']}")
        _check_between_commits(rounds, other, monkeypatch)
        rounds.world.model(
            "sums", "SELECT name, max(id) AS id, count(ratio) AS n FROM {t} GROUP BY name", None, "delta"
        )
        rounds.step()
        check()
        rounds.world.insert("t", [(3, "anew", None, 0.25, None)])
        rounds.world.step(full_refresh=True)
        check()
        rounds.world.outputs["rows"] = ""
        rounds.world.step()
        with pytest.raises(ValueError, match=r"DELTA_TABLE_NOT_FOUND|DELTA_PATH_DOES_NOT_EXIST"):
            other.rows("rows")
        rounds.world.outputs["rows"] = "delta"
        rounds.step()
        check()
        other.sql("DROP TABLE sums")
        rounds.step()


def _check_between_commits(rounds: Models, other: PlainSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends after the collection's commit leaves the table at the former one, until the next run."""
    before = {name: other.rows(name) for name in ("rows", "sums")}

    def ended(*_: Any) -> None:
        raise StateError("the run ends here")

    rounds.world.insert("t", [(7, "between", None, 0.5, None)])
    rounds.world.step_tables()
    with monkeypatch.context() as patched:
        patched.setattr(model, "keep_table", ended)
        for name in before:
            with pytest.raises(StateError, match="ends here"):
                rounds.world.run_only(name)
    last = {name: rounds.contents(name, rounds.collection(name).frontiers.last) for name in before}
    assert all(last[name] != before[name] == other.rows(name) for name in before)
    rounds.world.run_only(*before)
    assert {name: other.rows(name) for name in before} == last


def _versions(uris: dict[str, str]) -> dict[str, list[int]]:
    return {
        name: sorted(int(file.stem) for file in Path(uri, "_delta_log").glob("*.json")) for name, uri in uris.items()
    }


def test_a_name_that_came_first(spark: SparkSession, tmp_path: Path) -> None:
    rounds = Models(spark, tmp_path / "state", 6, Thresholds(), "delta", "rows")
    with plain_session(tmp_path / "other") as other:
        other.sql(f"CREATE TABLE rows USING delta LOCATION '{rounds.collection('rows').place.table_uri}'")
        for _ in range(3):
            rounds.step()
            assert other.rows("rows") == rounds.contents("rows", rounds.world.time)
