"""Records with arrays, maps and structs are read on the driver as Spark reads them, whoever wrote the file."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.asked import ListeningSession
from dbt_incremental_dd.runtime.verify import contents
from dbt_incremental_dd.sources.intake import take_in
from dbt_incremental_dd.trace.columns import columns_of
from tests.engines import IN_SPARK
from tests.sources.test_intake import Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DAY, _PRICE = datetime.date(2024, 2, 29), Decimal("1.50")
FILES: list[list[dict[str, Any]]] = [
    [
        {"id": 1, "tags": ["a", None], "items": [{"sku": "x", "price": _PRICE}], "props": [("k", [1])]},
        {"id": 2, "tags": [], "items": [], "props": [], "at": {"day": _DAY, "deep": {"n": [[1], []]}}},
        {"id": 3},
    ],
    [
        {"id": 1, "tags": ["a"], "items": [None, {"sku": None}], "props": [("b", None), ("a", [])]},
        {"id": 3, "at": {"day": None, "deep": None}},
    ],
    [{"id": 2, "tags": [None]}, {"id": 4, "items": [{"price": Decimal("-0.01")}]}],
]
_ITEM = pa.struct([("sku", pa.string()), ("price", pa.decimal128(8, 2))])
_AT = pa.struct([("day", pa.date32()), ("deep", pa.struct([("n", pa.list_(pa.list_(pa.int32())))]))])
PLAIN = pa.schema(
    [
        ("id", pa.int64()),
        ("tags", pa.list_(pa.string())),
        ("items", pa.list_(_ITEM)),
        ("props", pa.map_(pa.string(), pa.list_(pa.int64()))),
        ("at", _AT),
    ]
)
OTHER = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("tags", pa.large_list(pa.field("x", pa.large_string()))),
        ("items", pa.list_(pa.field("item", _ITEM))),
        ("props", pa.map_(pa.string(), pa.large_list(pa.int64()))),
        ("at", _AT),
    ]
)


def _by_arrow(schema: pa.Schema) -> Any:
    def write(spark: SparkSession, path: Path, rows: list[dict[str, Any]]) -> None:
        pq.write_table(pa.Table.from_pylist(rows, schema), path)

    return write


def _by_spark(spark: SparkSession, path: Path, rows: list[dict[str, Any]]) -> None:
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, PLAIN)).coalesce(1)
    frame.write.parquet(str(path.parent.parent / "made" / path.name))
    (made,) = (path.parent.parent / "made" / path.name).glob("*.parquet")
    made.rename(path)


WRITERS = {"arrow": _by_arrow(PLAIN), "arrow otherwise": _by_arrow(OTHER), "spark": _by_spark}


def _rows(reader: Reader) -> Counter[str]:
    """The collection as a multiset, rows as texts."""
    place = reader.storage.collection("s.t")
    log = place.log()
    assert log is not None
    frame = contents(reader.spark, log, columns_of(place, log), log.frontiers.last)
    return Counter(repr(tuple(row)) for row in frame.collect())


def _take(reader: Reader) -> list[str]:
    """One intake, and who asked Spark in it."""
    reader.time += 1
    session = ListeningSession(reader.spark)
    take_in(session, reader.storage, reader.spec, reader.time, reader.notes.append)
    return list(session.asked)


@pytest.mark.parametrize("envelope", [{"envelope": "append"}, {"envelope": "upsert", "key": ["id"]}])
@pytest.mark.parametrize("writer", WRITERS)
def test_parquet(spark: SparkSession, tmp_path: Path, writer: str, envelope: dict[str, Any]) -> None:
    found: dict[str, Counter[str]] = {}
    for where, thresholds in (("driver", None), ("Spark", IN_SPARK)):
        folder = tmp_path / where
        folder.mkdir()
        reader = Reader(spark, folder, {}, thresholds=thresholds, format="parquet", **envelope)
        for number, rows in enumerate(FILES):
            WRITERS[writer](spark, folder / "in" / f"{number}.parquet", rows)
            asked = _take(reader)
            is_first_of_spark = writer == "spark" and not number  # whose own form of the schema it reads itself
            assert where == "Spark" or is_first_of_spark or not asked, asked
        found[where] = _rows(reader)
    assert found["driver"] == found["Spark"]
    assert found["driver"].total() == (4 if "key" in envelope else 7)


def test_json(spark: SparkSession, tmp_path: Path) -> None:
    types = {
        "id": "BIGINT",
        "tags": "ARRAY<STRING>",
        "items": "ARRAY<STRUCT<sku: STRING, price: DECIMAL(8,2)>>",
        "props": "MAP<STRING, ARRAY<BIGINT>>",
        "at": "STRUCT<day: DATE, deep: STRUCT<n: ARRAY<ARRAY<INT>>>>",
    }
    found: dict[str, Counter[str]] = {}
    for where, thresholds in (("driver", None), ("Spark", IN_SPARK)):
        folder = tmp_path / where
        folder.mkdir()
        reader = Reader(spark, folder, types, thresholds=thresholds, envelope="upsert", key=["id"])
        for number, rows in enumerate(FILES):
            lines = [{**row, "props": dict(row["props"])} if "props" in row else row for row in rows]
            reader.write(f"{number}.json", [json.dumps(line, default=str) for line in lines])
            asked = _take(reader)
            assert where == "Spark" or not number or not asked, asked
        found[where] = _rows(reader)
    assert found["driver"] == found["Spark"] and found["driver"].total() == 4


def test_old_dates_inside_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    reader = Reader(spark, tmp_path, {}, format="parquet", envelope="append")
    _by_arrow(PLAIN)(spark, tmp_path / "in" / "0.parquet", FILES[0])
    assert not _take(reader)
    old = [{"id": 5, "at": {"day": datetime.date(1400, 1, 1), "deep": None}}]
    _by_spark(spark, tmp_path / "in" / "1.parquet", old)
    assert _take(reader)
    assert _rows(reader).total() == 4
