"""Folders in partitions as sources: the columns that folders' names give, by Spark and on the driver alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.verify import contents
from dbt_incremental_dd.sources import partitions
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.sources.intake import Intake, take_in
from dbt_incremental_dd.trace.layout import Storage
from tests.oracle import difference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TYPES = {"k": "bigint", "v": "string", "day": "date", "s": "string", "n": "int"}
ODD = ("plain", "a/b=c", "%41 ü", None, "x{y}[z]*?", "07", "2024")


class Folder:
    """A folder that Spark writes in partitions, and the source that reads it."""

    def __init__(
        self, spark: SparkSession, root: Path, form: str, typed: bool, thresholds: Thresholds | None = None, **meta: Any
    ) -> None:
        self.spark, self.path, self.form = spark, f"{root}/in", form
        options = {"header": "true"} if form == "csv" else {}
        settings = {"path": "in", "format": form, "options": options, **meta}
        self.options = options
        self.spec = parse_source("s.p", "s.p", settings, TYPES if typed else {}, str(root))
        self.storage = Storage(f"{root}/state", thresholds=thresholds or Thresholds())
        self.time = 1

    def frame(self, first: int, strings: tuple[str | None, ...] = ODD) -> DataFrame:
        """Rows of several partitions."""
        rows = [(first + i, f"v{i}", f"2024-01-0{1 + i % 3}", s, i % 2 or None) for i, s in enumerate(strings)]
        frame = self.spark.createDataFrame(rows, "k BIGINT, v STRING, day STRING, s STRING, n INT")
        return frame.selectExpr("k", "v", "CAST(day AS DATE) AS day", "s", "n")

    def write(self, frame: DataFrame, mode: str = "append") -> None:
        """More files."""
        writer = frame.coalesce(1).write.mode(mode).partitionBy("day", "s", "n").options(**self.options)
        writer.option("partitionOverwriteMode", "dynamic").format(self.form).save(self.path)

    def take(self) -> tuple[Intake, DataFrame]:
        """One intake, and the contents."""
        self.time += 1
        taken = take_in(LazySession.of(self.spark), self.storage, self.spec, self.time, print)
        return taken, contents(self.spark, taken.log, taken.schema, self.time)


@pytest.mark.parametrize("form", ["parquet", "json", "csv"])
@pytest.mark.parametrize("way", ["driver", "spark"])
def test_columns_of_folders(
    spark: SparkSession, tmp_path: Path, form: str, way: str, request: pytest.FixtureRequest
) -> None:
    thresholds = request.getfixturevalue("in_spark") if way == "spark" else None
    folder = Folder(spark, tmp_path, form, typed=True, thresholds=thresholds, envelope="append")
    one, other = folder.frame(0), folder.frame(100)
    folder.write(one)
    _, found = folder.take()
    assert difference(one.select(found.columns), found) == ([], [])
    folder.write(other)
    taken, found = folder.take()
    assert taken.rows == len(ODD)
    assert dict(found.dtypes) == TYPES
    assert difference(one.union(other).select(found.columns), found) == ([], [])


def test_types_as_spark_infers_them(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(spark, tmp_path, "parquet", typed=False, envelope="append")
    folder.write(folder.frame(0, ("1", "2", None)))
    _, found = folder.take()
    answer = spark.read.parquet(folder.path)
    assert (found.dtypes, dict(found.dtypes)["s"]) == (answer.dtypes, "int")
    folder.write(folder.frame(10, ("3", "4", None)))
    _, found = folder.take()
    assert difference(spark.read.parquet(folder.path), found) == ([], [])
    folder.write(folder.frame(10, ("no number",)))
    with pytest.raises(SourceError, match="no number"):
        folder.take()


def test_only_partitions_that_changed_are_compared(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(spark, tmp_path, "parquet", typed=True)
    base = folder.frame(0)
    folder.write(base)
    folder.take()
    # A row that is stored and not in the files: where its partition is compared, it goes.
    folder.write(base.where("s = 'plain'").selectExpr("k + 1 AS k", "v", "day", "s", "n"), "overwrite")
    seen: list[list[int]] = []
    rows = partitions.partition_rows
    compared = "dbt_incremental_dd.sources.envelopes.snapshot.partition_rows"
    monkeypatch.setattr(compared, lambda *a: seen.append([*map(len, a[0])]) or rows(*a))
    taken, found = folder.take()
    answer = folder.frame(0).selectExpr("IF(s = 'plain', k + 1, k) AS k", "v", "day", "s", "n")
    assert taken.rows == 2
    assert seen == [[3]], "one partition of three columns"
    assert difference(answer.select(found.columns), found) == ([], [])
    (gone,) = (path for path in Path(folder.path).rglob("*.parquet") if "s=plain" in str(path))
    gone.unlink()
    taken, found = folder.take()
    assert taken.rows == 1
    assert difference(answer.where("NOT s <=> 'plain'").select(found.columns), found) == ([], [])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("day=2024-01-01/x.parquet", (("day", "2024-01-01"),)),
        ("a=1/b=__HIVE_DEFAULT_PARTITION__/x=y.parquet", (("a", "1"), ("b", None))),
        ("a=x%2Fy%3D%25/f", (("a", "x/y=%"),)),
        ("2024/01/f.json", ()),
        ("f=1.json", ()),
    ],
)
def test_names(name: str, expected: tuple[Any, ...]) -> None:
    assert partitions.partition_of(name) == expected
