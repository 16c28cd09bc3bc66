"""The law of upserts, by plain Python: records taken in on the driver and in Spark leave the same rows."""

from __future__ import annotations

import logging
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.errors import ConfigError, SourceError
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.sources.envelopes import upsert
from tests.sources.test_intake import Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {"id": "bigint", "k": "string", "v": "string", "pos": "int", "at": "date", "flag": "boolean"}
NAMES = tuple(COLUMNS)
SETTINGS: dict[str, dict[str, Any]] = {
    "ordered with deletes": {"key": ["id"], "order_by": ["pos"], "deleted_when": "v = 'x' OR flag"},
    "ordered by two": {"key": ["id", "k"], "order_by": ["at", "pos"], "deleted_when": "v IN ('x', 'y')"},
    "as they come": {"key": ["id"], "deleted_when": "v = 'x'"},
    "never deleted": {"key": ["k"], "order_by": ["pos"]},
}
Row = tuple[Any, ...]


class Model:
    """What is stored of each key: its row, and the position of its last delete."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._key = [NAMES.index(name) for name in settings["key"]]
        self._order = [NAMES.index(name) for name in settings.get("order_by", ())]
        self._condition = settings.get("deleted_when")
        self.rows: dict[Row, Row] = {}
        self._dead: dict[Row, list[Any]] = {}

    def take(self, records: list[tuple[str, Row]]) -> None:
        """``records``: each with its file's name."""
        latest: dict[Row, tuple[list[Any], Row]] = {}
        for file, row in records:
            key = tuple(row[place] for place in self._key)
            rank = [*_ordered(row[place] for place in self._order), file, *_ordered(row)]
            if key not in latest or rank > latest[key][0]:
                latest[key] = (rank, row)
        for key, (_, row) in latest.items():
            self._apply(key, row)

    def _apply(self, key: Row, row: Row) -> None:
        position, is_delete = self._position(row), self._is_delete(row)
        known = self._position(self.rows[key]) if key in self.rows else self._dead.get(key)
        is_taken = not self._order or known is None or position >= known
        if is_delete and (key not in self._dead or position > self._dead[key]) and self._order:
            self._dead[key] = position
        if is_taken and is_delete:
            self.rows.pop(key, None)
        elif is_taken:
            self.rows[key] = row

    def _position(self, row: Row) -> list[Any]:
        return _ordered(row[place] for place in self._order)

    def _is_delete(self, row: Row) -> bool:
        value, flag = row[NAMES.index("v")], row[NAMES.index("flag")]
        return {
            None: False,
            "v = 'x'": value == "x",
            "v = 'x' OR flag": value == "x" or bool(flag),
            "v IN ('x', 'y')": value in ("x", "y"),
        }[self._condition]


def _ordered(values: Any) -> list[Any]:
    """Values that can be compared, NULL the least."""
    return [(value is not None, value) if value is not None else (False,) for value in values]


@pytest.mark.parametrize("title", SETTINGS)
def test_both_engines_keep_the_law(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, title: str
) -> None:
    rng, model = random.Random(title), Model(SETTINGS[title])
    seen = Counter[tuple[str, bool]]()
    against, where = upsert._against_stored, ""

    def noted(*args: Any) -> Any:
        found = against(*args)
        seen[where, found.is_local] += 1
        return found

    monkeypatch.setattr(upsert, "_against_stored", noted)
    readers = {}
    for where in ("driver", "Spark"):
        (tmp_path / where).mkdir()
        thresholds = Thresholds(taken_rows=0) if where == "Spark" else Thresholds()
        settings = SETTINGS[title]
        readers[where] = Reader(spark, tmp_path / where, COLUMNS, thresholds=thresholds, envelope="upsert", **settings)
    for number in range(5):
        records = [record(rng) for _ in range(rng.choice([1, 8, 40]))]
        files = {f"{number}a.json": records[::2], f"{number}b.json": records[1::2]}
        model.take([(file, tuple(r[name] for name in NAMES)) for file, rows in files.items() for r in rows])
        for where, reader in readers.items():
            for name, rows in files.items():
                reader.write(name, rows)
            with monkeypatch.context() as patch, caplog.at_level(logging.DEBUG, "dbt_incremental_dd.relation"):
                if where == "Spark":
                    patch.setattr("dbt_incremental_dd.sources.connectors.files.connector.read_few", _nothing)
                reader.take()
            found = Counter(tuple(None if v is None else str(v) for v in row) for row in reader.rows())
            wanted = Counter(tuple(None if v is None else str(v) for v in row) for row in model.rows.values())
            assert found == wanted, f"batch {number}, {where}"
    assert seen == {("driver", True): 4, ("Spark", False): 4}
    assert not caplog.records, "nothing was left to Spark that is the driver's"


def _nothing(*_: Any) -> None:
    """No records are few."""


def test_a_condition_that_only_spark_can_read_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    reader = Reader(spark, tmp_path, COLUMNS, envelope="upsert", key=["id"], deleted_when="v RLIKE '^x' OR v ILIKE 'Y'")
    for number, values in enumerate((["a", "b"], ["x1", "b"], ["y", "z"])):
        reader.write(f"{number}.json", [{"id": i, "v": v} for i, v in enumerate(values)])
        reader.take()
    assert [row[2] for row in reader.rows()] == ["z"]
    reader.spec = replace(reader.spec, settings=replace(reader.spec.settings, deleted_when="v = 'x' AND ("))
    reader.write("3.json", [{"id": 1, "v": "c"}])
    with pytest.raises(ConfigError, match="deleted_when"):
        reader.take()
    reader.spec = replace(reader.spec, settings=replace(reader.spec.settings, deleted_when="v = 'x' -- or not"))
    reader.write("3.json", [{"id": None, "v": "c"}, {"id": 1, "v": "c"}])
    with pytest.raises(SourceError, match=r"key column id is NULL in 1 new record"):
        reader.take()


def record(rng: random.Random) -> dict[str, Any]:
    """Few keys and positions, so that there are ties, records that come late, and NULLs."""
    return {
        "id": rng.randrange(12),
        "k": rng.choice("ab"),
        "v": rng.choice([*"xyz", "z", None]),
        "pos": rng.choice([1, 2, 3, 4, None]),
        "at": rng.choice(["2024-01-01", "2024-01-02", None]),
        "flag": rng.choice([True, False, False, None]),
    }
