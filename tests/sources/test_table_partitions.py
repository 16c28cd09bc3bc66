"""Partitioned tables of the catalog as sources: of those that changed alone is read, as long as folders tell the truth."""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.verify import contents
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.sources.connectors.table import connector as table
from dbt_incremental_dd.sources.intake import take_in
from dbt_incremental_dd.sources.partitions import Partition
from dbt_incremental_dd.trace.layout import Storage
from tests.oracle import difference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBERS = itertools.count()
ODD = ("plain", "a/b=c", "%41 ü", None, "x{y}[z]*?", "07", "it's", "back\\slash")


class Table:
    """A table of the catalog, the source that reads it, and which partitions the last intake read: None for all."""

    def __init__(self, spark: SparkSession, root: Path, definition: str, envelope: str = "snapshot") -> None:
        self.spark, self.name = spark, f"parted{next(_NUMBERS)}"
        self.sql(f"CREATE TABLE {self.name} {definition}")
        self.spec = parse_source("s.p", self.name, {"envelope": envelope}, {}, str(root))
        self.storage = Storage(f"{root}/state")
        self.read: set[Partition] | None = None
        self.time = 1

    def sql(self, text: str) -> None:
        self.spark.sql(text.replace("{t}", self.name))

    @property
    def folder(self) -> str:
        """Where it lies."""
        told = self.spark.sql(f"DESCRIBE EXTENDED {self.name}").where("col_name = 'Location'").collect()
        return str(told[0]["data_type"]).removeprefix("file:")

    def check(self) -> None:
        """Takes in what is new; the contents are the table's rows then."""
        self.time += 1
        taken = take_in(LazySession.of(self.spark), self.storage, self.spec, self.time, print)
        found = contents(self.spark, taken.log, taken.schema, self.time)
        self.sql("REFRESH TABLE {t}")
        assert difference(self.spark.table(self.name).select(found.columns), found) == ([], [])


@pytest.fixture
def made(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Table]]:
    """Tables that are dropped in the end; the test adds them."""
    found: list[Table] = []
    inner = table.changed_partitions

    def noted(*arguments: object, **named: object) -> set[Partition] | None:
        found[-1].read = inner(*arguments, **named)  # type: ignore[arg-type]
        return found[-1].read

    monkeypatch.setattr(table, "changed_partitions", noted)
    yield found
    for one in found:
        one.sql("DROP TABLE {t}")


def names(read: set[Partition] | None) -> list[str] | None:
    return None if read is None else sorted("/".join(f"{key}={text}" for key, text in one) for one in read)


@pytest.mark.parametrize("form", ["USING parquet", "USING json", "STORED AS orc", "STORED AS textfile"])
def test_what_changed_is_read(spark: SparkSession, tmp_path: Path, made: list[Table], form: str) -> None:
    if form.startswith("USING"):
        definition = f"(k BIGINT, v STRING, day DATE, n INT) {form} PARTITIONED BY (day, n)"
    else:
        definition = f"(k BIGINT, v STRING) PARTITIONED BY (day DATE, n INT) {form}"
    made.append(Table(spark, tmp_path, definition))
    told = form != "STORED AS textfile"
    one = made[0]
    one.sql("SET hive.exec.dynamic.partition.mode=nonstrict")
    one.sql("INSERT INTO {t} SELECT id, 'v', date_add(DATE'2024-01-01', int(id % 3)), int(id % 2) FROM range(60)")
    one.check()
    assert one.read is None
    one.sql("INSERT INTO {t} PARTITION (day = DATE'2024-01-02', n = 1) VALUES (100, 'new')")
    one.check()
    assert names(one.read) == (["day=2024-01-02/n=1"] if told else None)
    one.sql("INSERT OVERWRITE {t} PARTITION (day = DATE'2024-01-03', n = 0) SELECT 7, 'v' FROM range(2)")
    one.sql("ALTER TABLE {t} DROP PARTITION (day = DATE'2024-01-01', n = 1)")
    one.sql("INSERT INTO {t} PARTITION (day = DATE'2024-01-09', n = 5) VALUES (101, NULL)")
    one.check()
    assert not told or names(one.read) == ["day=2024-01-01/n=1", "day=2024-01-03/n=0", "day=2024-01-09/n=5"]
    one.sql("ALTER TABLE {t} ADD PARTITION (day = DATE'2025-01-01', n = 1)")
    one.check()
    one.sql("INSERT INTO {t} PARTITION (day = DATE'2024-01-02', n = 1) VALUES (102, 'again')")
    one.check()
    assert names(one.read) == (["day=2024-01-02/n=1"] if told else None)


def test_values_of_any_kind(spark: SparkSession, tmp_path: Path, made: list[Table]) -> None:
    made.append(Table(spark, tmp_path, "(k BIGINT, v STRING, s STRING, b BOOLEAN) USING parquet PARTITIONED BY (s, b)"))
    one, rng = made[0], random.Random(5)
    for number in range(8):
        rows = [(number * 100 + i, f"v{i}", s, rng.choice((True, False, None))) for i, s in enumerate(ODD)]
        chosen = rng.sample(rows, 3) if number else rows
        spark.createDataFrame(chosen, "k BIGINT, v STRING, s STRING, b BOOLEAN").write.insertInto(one.name)
        one.check()
        assert number == 0 or one.read == {
            (("s", row[2]), ("b", None if row[3] is None else str(row[3]).lower())) for row in chosen
        }


def test_folders_that_do_not_tell_the_truth(spark: SparkSession, tmp_path: Path, made: list[Table]) -> None:
    """Partitions in folders of other names, elsewhere, and in each other's."""
    made.append(Table(spark, tmp_path, "(k BIGINT, v STRING, n INT) USING parquet PARTITIONED BY (n)"))
    one = made[0]
    one.sql("INSERT INTO {t} SELECT id, 'v', int(id % 4) FROM range(40)")
    one.check()
    where = one.folder
    one.sql(f"ALTER TABLE {{t}} PARTITION (n = 1) SET LOCATION '{where}/n=2'")
    one.sql(f"ALTER TABLE {{t}} PARTITION (n = 2) SET LOCATION '{where}/n=1'")
    for n in (1, 2):
        one.sql(f"INSERT INTO {{t}} PARTITION (n = {n}) VALUES ({100 + n}, 'new')")
        one.check()
        assert one.read is None
    one.sql("INSERT INTO {t} PARTITION (n = 3) VALUES (200, 'new')")
    one.sql(f"ALTER TABLE {{t}} ADD PARTITION (n = 9) LOCATION '{tmp_path}/elsewhere'")
    one.sql("INSERT INTO {t} PARTITION (n = 9) VALUES (300, 'far')")
    one.check()
    assert one.read is None
    one.sql("ALTER TABLE {t} ADD PARTITION (n = 10)")
    one.sql(f"ALTER TABLE {{t}} PARTITION (n = 10) SET LOCATION '{where}/n=0'")
    one.sql("INSERT INTO {t} PARTITION (n = 0) VALUES (400, 'both')")
    one.check()
    assert one.read is None


@pytest.mark.parametrize("by", ["", "PARTITIONED BY (n)"])
@pytest.mark.parametrize("view", [False, True])
def test_files_that_somebody_else_writes(
    spark: SparkSession, tmp_path: Path, made: list[Table], by: str, view: bool
) -> None:
    """The session has not heard of them."""
    made.append(Table(spark, tmp_path, f"(k BIGINT, n INT) USING parquet {by}"))
    one = made[0]
    if view:
        one.sql("CREATE OR REPLACE TEMP VIEW over_{t} AS SELECT k, n FROM {t}")
        one.spec = parse_source("s.p", f"over_{one.name}", {}, {}, str(tmp_path))
    one.sql("INSERT INTO {t} VALUES (1, 1), (2, 2)")
    one.check()
    rows = pa.table({"k": [3, 4]} if by else {"k": [3, 4], "n": pa.array([1, 1], pa.int32())})
    pq.write_table(rows, f"{one.folder}/{'n=1/' if by else ''}other.parquet")
    one.time += 1
    taken = take_in(LazySession.of(spark), one.storage, one.spec, one.time, print)
    assert taken.rows == 2
    one.check()


def test_types_that_are_read_otherwise_than_written(spark: SparkSession, tmp_path: Path, made: list[Table]) -> None:
    made.append(Table(spark, tmp_path, "(k INT, v STRING, c CHAR(5), d DECIMAL(5,2)) USING json PARTITIONED BY (c, d)"))
    one = made[0]
    for number in range(3):
        one.sql(f"INSERT INTO {{t}} VALUES ({number}, 'v', 'ab', 1.50), ({number}, 'w', 'c', {number})")
        one.check()
        assert one.read is None


def test_new_files_are_told_by_their_whole_paths(spark: SparkSession, tmp_path: Path, made: list[Table]) -> None:
    """For ``append``: files of one name in several partitions, whose names Spark escapes, and a name that ends another."""
    made.append(Table(spark, tmp_path, "(k BIGINT, s STRING) USING parquet PARTITIONED BY (s)", envelope="append"))
    one = made[0]
    for i, s in enumerate((*ODD, "ends")):
        spark.createDataFrame([(i, s)], "k BIGINT, s STRING").coalesce(1).write.insertInto(one.name)
        if i in (0, 3):
            one.check()
    first = next(Path(one.folder).glob("s=plain/*.parquet"))
    for name in ("s=copied", "s=a b"):
        (Path(one.folder) / name).mkdir()
        shutil.copy(first, Path(one.folder) / name / first.name)
        one.sql("MSCK REPAIR TABLE {t}")
        one.check()
    shutil.copy(first, first.parent / f"x{first.name}")
    one.check()
    shutil.copy(first, first.parent / "y z%20ü.parquet")
    one.check()
