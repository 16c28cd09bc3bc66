"""Sources whose settings or columns change after an intake: they become what a first intake makes of the same files,
or stay what they are and say why."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt_incremental_dd.core.errors import ConfigError, DifferentialError, SourceError
from dbt_incremental_dd.core.manifest import SourceManifest
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.sources.connectors.files.spec import FilesSpec
from tests.sources.test_intake import Reader
from tests.sources.test_table_partitions import Table
from tests.time_zone import time_zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {"id": "bigint", "v": "string", "pos": "int"}
OTHERS = {
    "a new column": {**COLUMNS, "w": "decimal(9,2)"},
    "another type": {**COLUMNS, "pos": "double"},
    "one less": {"id": "bigint", "pos": "int"},
    "another order": {"v": "string", "pos": "int", "id": "bigint"},
    "another name": {"id": "bigint", "w": "decimal(9,2)", "pos": "int"},
}
UPSERT = {"envelope": "upsert", "key": "id", "order_by": "pos"}
ENVELOPES: dict[str, dict[str, Any]] = {
    "append": {"envelope": "append"},
    "snapshot": {"envelope": "snapshot"},
    "upsert": UPSERT,
    "changelog": {"envelope": "changelog", "diff_column": "d"},
}
FORMATS: dict[str, dict[str, Any]] = {
    "json": {"format": "json"},
    "csv": {"format": "csv"},
    "parquet": {"format": "parquet"},
    "a growing file": {"format": "json", "path": "in/log.jsonl"},
    "partitions": {"format": "json"},
}


class Redefined(Reader):
    """A source that is declared in other ways as it goes on; ``check`` compares it with a first intake."""

    def __init__(self, spark: SparkSession, folder: Path, columns: dict[str, str], **meta: Any) -> None:
        super().__init__(spark, folder, columns, **meta)
        self.columns, self.meta = columns, meta

    def define(self, columns: dict[str, str] | None = None, **meta: Any) -> None:
        """Other columns, or other settings."""
        self.columns, self.meta = columns or self.columns, {**self.meta, **meta}
        settings = {key: value for key, value in {"path": "in", "format": "json", **self.meta}.items() if value}
        self.spec = parse_source("s.t", "s.t", settings, self.columns, str(self.folder))

    def check(self) -> Counter[tuple[Any, ...]]:
        """Takes in what there is. Returns the rows, which are those of a first intake."""
        self.take()
        fresh = Redefined.__new__(Redefined)
        fresh.__dict__.update(self.__dict__)
        fresh.storage = type(self.storage)(f"{self.storage.root}-{self.time}", thresholds=self.storage.thresholds)
        fresh.take()
        found = self.rows()
        assert found == fresh.rows()
        assert self.manifest.schema == fresh.manifest.schema
        return found

    @property
    def manifest(self) -> SourceManifest:
        """As of the last commit."""
        place = self.storage.collection("s.t")
        log = place.log()
        found = place.read_manifest(log.manifest if log else None)
        assert isinstance(found, SourceManifest)
        return found

    def file(self, form: str, number: int) -> None:
        """A file of three records, in a form of ``FORMATS``."""
        records = [
            {"id": n % 4, "v": None if n == 2 else f"v{n}", "pos": n, "w": f"{n}.50", "d": 2 if n == 5 else 1}
            for n in range(3 * number, 3 * number + 3)
        ]
        target = self.folder / "in"
        if form == "parquet":
            rows = [{name: record[name] for name in self.columns} for record in records]
            schema = pa.schema([(name, _ARROW[dtype]) for name, dtype in self.columns.items()])
            columns = [
                pa.array([row[name] for row in rows]).cast(field.type)
                for name, field in zip(self.columns, schema, strict=True)
            ]
            pq.write_table(pa.table(columns, schema=schema), target / f"{number}.parquet")
        elif form == "csv":
            lines = [
                ",".join("" if record[name] is None else str(record[name]) for name in self.columns)
                for record in records
            ]
            (target / f"{number}.csv").write_text("".join(f"{line}\n" for line in lines))
        else:
            name = {"a growing file": "log.jsonl", "partitions": f"day=2026-01-0{number + 1}/f.json"}.get(
                form, f"{number}.json"
            )
            (target / name).parent.mkdir(exist_ok=True)
            with (target / name).open("a") as out:
                out.writelines(json.dumps(record) + "\n" for record in records)


_ARROW = {
    "bigint": pa.int64(),
    "string": pa.string(),
    "int": pa.int32(),
    "double": pa.float64(),
    "decimal(9,2)": pa.decimal128(9, 2),
}


def declared(columns: dict[str, str], envelope: str, form: str) -> dict[str, str]:
    more = {"d": "int"} if envelope == "changelog" else {}
    return {**columns, **more, **({"day": "date"} if form == "partitions" else {})}


@pytest.mark.parametrize("form", [form for form in FORMATS if form not in ("csv", "parquet")])
@pytest.mark.parametrize("envelope", ENVELOPES)
def test_declared_columns_that_change(spark: SparkSession, tmp_path: Path, envelope: str, form: str) -> None:
    settings = {**ENVELOPES[envelope], **FORMATS[form]}
    reader = Redefined(spark, tmp_path, declared(COLUMNS, envelope, form), **settings)
    reader.file(form, 0)
    reader.check()
    for number, columns in enumerate(OTHERS.values()):
        reader.define(declared(columns, envelope, form))
        if number % 2:
            reader.file(form, number)
        before = len(reader.notes)
        reader.check()
        assert sum("taken in anew" in note for note in reader.notes[before:]) == 1
        reader.file(form, number + 5)
        reader.check()
        assert sum("taken in anew" in note for note in reader.notes[before:]) == 1


SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "another key": (UPSERT, {"key": ["id", "pos"]}),
    "another order": ({**UPSERT, "order_by": "id"}, {"order_by": "pos"}),
    "what deletes": (UPSERT, {"deleted_when": "pos % 2 = 0"}),
    "what deletes no longer": ({**UPSERT, "deleted_when": "pos % 2 = 0"}, {"deleted_when": None}),
    "another envelope": (UPSERT, {"envelope": "append", "key": None, "order_by": None}),
    "an envelope with a key": ({"envelope": "append"}, UPSERT),
    "an option": ({"envelope": "append", "format": "csv"}, {"options": {"sep": "|"}}),
    "an option of dates": (
        {"envelope": "append", "options": {"timestampFormat": "yyyy"}},
        {"options": {"timestampFormat": "yyyy-MM-dd"}},
    ),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_settings_that_change(spark: SparkSession, tmp_path: Path, case: str) -> None:
    first, then = SETTINGS[case]
    form = str(first.get("format", "json"))
    reader = Redefined(spark, tmp_path, COLUMNS, **first)
    if form == "csv":
        (tmp_path / "in" / "1.csv").write_text("1,a|b|3,4\n")
        reader.define({"id": "string", "v": "string", "pos": "string"})
    else:
        reader.file(form, 0)
        reader.file(form, 1)
    before = reader.check()
    reader.define(**then)
    after = reader.check()
    assert case in ("an option of dates", "another order") or before != after
    assert reader.notes[-1].endswith("it is taken in anew") or reader.notes[-2].endswith("it is taken in anew")
    notes = len(reader.notes)
    if form != "csv":
        reader.file(form, 2)
    reader.check()
    assert len(reader.notes) == notes


def test_types_that_are_written_otherwise_are_the_same(spark: SparkSession, tmp_path: Path) -> None:
    reader = Redefined(spark, tmp_path, COLUMNS, envelope="append")
    reader.file("json", 0)
    reader.check()
    reader.define({"id": "LONG", "v": "String", "pos": "integer"})
    assert reader.take().rows == 0
    assert not reader.notes


def test_a_source_of_an_earlier_release_is_not_taken_in_anew(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dbt_incremental_dd.sources.intake.definition", lambda *_: {})
    reader = Redefined(spark, tmp_path, COLUMNS, envelope="append")
    reader.file("json", 0)
    reader.take()
    monkeypatch.undo()
    assert "definition" not in reader.manifest.to_json()
    reader.file("json", 1)
    assert reader.check().total() == 6
    assert not reader.notes
    reader.define(OTHERS["one less"])
    reader.check()
    assert len(reader.notes) == 1


def test_files_that_are_gone_keep_the_source_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    reader = Redefined(spark, tmp_path, COLUMNS, envelope="append")
    reader.file("json", 0)
    reader.file("json", 1)
    before = reader.check()
    (tmp_path / "in" / "0.json").unlink()
    reader.define(OTHERS["a new column"])
    with pytest.raises(SourceError, match=r"1 file\(s\) that were taken in are gone, such as 0\.json"):
        reader.take()
    assert reader.rows() == before
    reader.define(COLUMNS)
    reader.file("json", 2)
    reader.take()
    assert reader.rows().total() == 9


def test_a_growing_file_that_was_replaced_is_not_taken_in_anew(spark: SparkSession, tmp_path: Path) -> None:
    reader = Redefined(spark, tmp_path, COLUMNS, envelope="append", **FORMATS["a growing file"])
    reader.file("a growing file", 0)
    before = reader.check()
    (tmp_path / "in" / "log.jsonl").write_text('{"id": 1}\n')
    reader.define(OTHERS["a new column"])
    with pytest.raises(SourceError, match="was replaced or cut"):
        reader.take()
    assert reader.rows() == before


@pytest.mark.parametrize(
    "point", ["source: arrived", "source: updates written", "source: states written", "commit: before"]
)
def test_an_intake_anew_that_ends_halfway_leaves_the_former_one(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """With tombstones and records that wait, under keys of another type."""
    settings = {**UPSERT, "deleted_when": "v = 'gone'", "event_time": "timestamp_millis(pos)"}
    reader = Redefined(spark, tmp_path, COLUMNS, **settings)
    reader.write(
        "1.json", [{"id": 1, "v": "a", "pos": 5}, {"id": 2, "v": "b", "pos": 6}, {"id": 9, "v": "c", "pos": 10_000}]
    )
    reader.check()
    reader.write("2.json", [{"id": 1, "v": "gone", "pos": 7}])
    before = reader.check()
    reader.define({**COLUMNS, "id": "string"})

    def end(reached: str) -> None:
        if reached == point:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        for module in ("sources.intake", "trace.log"):
            patch.setattr(f"dbt_incremental_dd.{module}.reached", end)
        reader.take()
    assert reader.rows() == before
    reader.define(COLUMNS)
    reader.write("3.json", [{"id": 1, "v": "late", "pos": 6}, {"id": 3, "v": "c", "pos": 8}])
    assert reader.check() == Counter({(2, "b", 6): 1, (3, "c", 8): 1})
    reader.define({**COLUMNS, "id": "string"})
    assert reader.check() == Counter({("2", "b", 6): 1, ("3", "c", 8): 1})
    reader.write("4.json", [{"id": 1, "v": "later", "pos": 6}])
    reader.take()
    assert reader.rows() == Counter({("2", "b", 6): 1, ("3", "c", 8): 1}), "the tombstone is known"
    reader.time = 20_000
    assert reader.check()[("9", "c", 10_000)] == 1, "what waited comes once"


def test_what_was_set_aside_is_set_aside_once(spark: SparkSession, tmp_path: Path) -> None:
    reader = Redefined(spark, tmp_path, COLUMNS, envelope="append", malformed="set_aside")
    reader.write("1.json", [{"id": 1, "v": "a", "pos": 1}, {"id": "x", "v": "a", "pos": 1}])
    reader.check()
    for columns, count in ((OTHERS["a new column"], 1), ({**COLUMNS, "id": "string"}, 0)):
        reader.define(columns)
        reader.check()
        log = reader.storage.collection("s.t__malformed").log()
        assert log is not None and sum(file.rows for file in log.files) == count


@pytest.mark.parametrize("envelope", ["append", "upsert"])
def test_settings_of_feeds_that_cannot_be_read_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, envelope: str
) -> None:
    """New columns are NULL in the rows that are there, where the envelope takes them; all else is an error."""
    monkeypatch.setattr(FilesSpec, "is_replayed", False)
    reader = Redefined(spark, tmp_path, COLUMNS, **ENVELOPES[envelope])
    reader.write("1.json", [{"id": 1, "v": "a", "pos": 1, "w": "1.5"}, {"id": 3, "v": "c", "pos": 1, "w": "3.5"}])
    reader.take()
    for name in ("another type", "one less", "another name"):
        reader.define(OTHERS[name])
        with pytest.raises(SourceError, match=r"its columns changed, and connector files cannot read again"):
            reader.take()
    reader.define(OTHERS["a new column"])
    reader.take()
    assert [column.name for column in reader.manifest.schema or ()] == [*COLUMNS, "w"]
    assert reader.rows() == Counter({(1, "a", 1, None): 1, (3, "c", 1, None): 1})
    reader.write("2.json", [{"id": 2, "v": "b", "pos": 2, "w": "2.5"}, {"id": 3, "v": "c", "pos": 2, "w": "3.5"}])
    reader.take()
    found = {(1, "a", 1, None), (2, "b", 2, Decimal("2.50")), (3, "c", 2, Decimal("3.50"))}
    assert set(reader.rows()) == (found if envelope == "upsert" else {*found, (3, "c", 1, None)})


PARQUET = {
    "a new column": [("id", pa.int64()), ("v", pa.string()), ("n", pa.int32()), ("w", pa.string())],
    "another type": [("id", pa.int64()), ("v", pa.string()), ("n", pa.float64())],
    "one less": [("id", pa.int64()), ("n", pa.int32())],
    "a new one in the middle": [("id", pa.int64()), ("m", pa.string()), ("v", pa.string()), ("n", pa.int32())],
}


@pytest.mark.parametrize("case", PARQUET)
@pytest.mark.parametrize("by_spark", [False, True], ids=["arrow", "spark"])
def test_a_snapshot_follows_the_columns_of_its_parquet(
    spark: SparkSession, tmp_path: Path, case: str, by_spark: bool
) -> None:
    reader = Redefined(spark, tmp_path, {}, envelope="snapshot", format="parquet")

    def write(columns: list[tuple[str, pa.DataType]], count: int) -> None:
        values = [pa.array([str(n) for n in range(count)]).cast(dtype) for _, dtype in columns]
        table = pa.table(values, names=[name for name, _ in columns])
        for file in (tmp_path / "in").glob("*"):
            file.unlink()
        if by_spark:
            spark.createDataFrame(table).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
        else:
            pq.write_table(table, tmp_path / "in" / "all.parquet")

    write([("id", pa.int64()), ("v", pa.string()), ("n", pa.int32())], 3)
    reader.check()
    write(PARQUET[case], 4)
    assert reader.check().total() == 4
    notes = len(reader.notes)
    write(PARQUET[case], 5)
    assert reader.check().total() == 5
    assert len(reader.notes) == notes


TABLES = {
    "a new column": "ALTER TABLE {t} ADD COLUMNS (w STRING)",
    "a new column, written": "SELECT 1L AS k, 'a' AS s, 2 AS n, 'w' AS w",
    "another type": "SELECT 1L AS k, 'a' AS s, 2.5D AS n",
    "one less": "SELECT 1L AS k, 2 AS n",
    "another order": "SELECT 'a' AS s, 1L AS k, 2 AS n",
    "no row": "SELECT 1L AS k, CAST(NULL AS DATE) AS n WHERE false",
}


@pytest.mark.parametrize("case", TABLES)
def test_a_table_of_the_catalog_that_has_other_columns(spark: SparkSession, tmp_path: Path, case: str) -> None:
    table = Table(spark, tmp_path, "(k BIGINT, s STRING, n INT) USING parquet")
    table.sql("INSERT INTO {t} VALUES (1, 'a', 2), (1, 'a', 2), (NULL, NULL, NULL)")
    table.check()
    change = TABLES[case]
    if change.startswith("SELECT"):
        table.sql("DROP TABLE {t}")
        change = f"CREATE TABLE {{t}} USING parquet AS {change}"
    table.sql(change)
    table.check()
    table.sql("INSERT INTO {t} SELECT * FROM {t}")
    table.check()


def test_bad_settings_are_errors_and_leave_what_is_stored(spark: SparkSession, tmp_path: Path) -> None:
    reader = Redefined(spark, tmp_path, COLUMNS, envelope="append")
    reader.file("json", 0)
    before = reader.check()
    reader.define({**COLUMNS, "pos": "boolean"})
    with pytest.raises(DifferentialError, match="do not fit its columns"):
        reader.take()
    assert reader.rows() == before


def test_times_without_a_zone_are_those_of_the_session(spark: SparkSession, tmp_path: Path) -> None:
    reader = Redefined(spark, tmp_path, {"id": "bigint", "at": "timestamp"}, envelope="append")
    reader.write("1.json", [{"id": 1, "at": "2026-01-01 00:00:00"}, {"id": 2, "at": "2026-01-01T00:00:00Z"}])
    reader.check()
    with time_zone(spark, "Asia/Tokyo"):
        reader.check()
        assert reader.notes == ["source s.t: its time zone changed: it is taken in anew"]
        reader.define({"id": "bigint", "at": "string"})
        reader.check()
    notes = len(reader.notes)
    reader.check()
    assert len(reader.notes) == notes, "texts are the same in all zones"


def test_models_that_read_a_source_by_different_settings(spark: SparkSession, tmp_path: Path) -> None:
    reader = Redefined(spark, tmp_path, COLUMNS, envelope="append")
    reader.file("json", 0)
    run = Run(LazySession.of(spark), reader.storage, "run", 5, reader.notes.append)
    assert run.source(reader.spec).rows == 3
    reader.define({name.upper(): dtype for name, dtype in COLUMNS.items()})
    with pytest.raises(ConfigError, match=r"source s\.t: models read it by different settings \(columns\)"):
        run.source(reader.spec)
    reader.define({"id": "long", "v": "STRING", "pos": "integer"})
    assert run.source(reader.spec).rows == 3
