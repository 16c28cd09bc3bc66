"""The oracle: small tables whose rows come and go, models over them, and Spark's own batch answer of the same SQL."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.conversion import LocalDataToArrowConversion
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    IntegralType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME, TIME_COLUMN, Schema
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.clock import with_run_time
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.frontend.template import template
from dbt_incremental_dd.history.history import History
from dbt_incremental_dd.logical.now import bind_now
from dbt_incremental_dd.logical.sql_types import described
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime import compile
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest, Outcome
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.verify import contents
from dbt_incremental_dd.trace import arrow_reader
from dbt_incremental_dd.trace.columns import columns_of
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.spark_reader import no_rows, schema_of, struct
from dbt_incremental_dd.trace.write import write_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBERS = itertools.count()


@dataclass
class Table:
    """A table of the test's own: its schema as DDL, and the rows that it has now."""

    ddl: str
    rows: list[tuple[Any, ...]] = field(default_factory=list)


class World:
    """Tables and models under a state root; time is counted by steps."""

    shown_each: ClassVar[int] = 1
    """A model's relation is read, by Spark, in the first check of it, and in each so many after it; else what is
    stored, without Spark."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path | Storage,
        tables: dict[str, Table],
        thresholds: Thresholds | None = None,
    ) -> None:
        self.spark = spark
        self.schema = f"w{next(_NUMBERS)}"
        stored = folder if isinstance(folder, Storage) else Storage(str(folder))
        self.storage = replace(stored, thresholds=thresholds or Thresholds())
        self.tables = tables
        self.models: dict[str, str] = {}
        self.histories: dict[str, History | None] = {}
        self.outputs: dict[str, str] = {}
        self.time = 1_000
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {self.schema}")
        self.schemas = {name: schema_of(StructType.fromDDL(table.ddl)) for name, table in tables.items()}
        self._checks: Counter[str] = Counter()
        self._plain: dict[str, tuple[list[tuple[Any, ...]], str]] = {}
        self._pending: dict[str, list[tuple[tuple[Any, ...], int]]] = {
            name: [(row, 1) for row in table.rows] for name, table in tables.items()
        }

    def insert(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Rows that are there from the next step on."""
        for row in rows:
            self.tables[table].rows.append(row)
            self._pending[table].append((row, 1))

    def delete(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Rows of which one is gone from the next step on."""
        for row in rows:
            self.tables[table].rows.remove(row)
            self._pending[table].append((row, -1))

    def model(self, name: str, sql: str, history: History | None = None, output: str = "") -> None:
        """A model, or its new SQL; tables and models are written ``{name}`` in it. ``history``: what is stored;
        ``output``: the format of its open table."""
        self.models[name] = sql
        self.histories[name] = history
        self.outputs[name] = output

    def step(self, **options: Any) -> dict[str, Outcome]:
        """One run over all tables' changes, every model in order."""
        run = self._next_run()
        return {name: run.model(self._request(name, **options)) for name in self.models}

    def step_tables(self) -> None:
        """The tables' changes at the next time, without any model."""
        self._next_run()

    def run_only(self, *names: str, **options: Any) -> dict[str, Outcome]:
        """One run, at a later time, of these models alone: tables and other models stay where they are."""
        compile._CACHE.clear()
        self.time += 1
        run = Run(LazySession.of(self.spark), self.storage, f"run{self.time}", self.time, lambda line: None)
        return {name: run.model(self._request(name, **options)) for name in names}

    def step_and_check_each(
        self,
        check: Callable[[str], None] | None = None,
        threads: int = 1,
        session: LazySession | None = None,
        **options: Any,
    ) -> list[str]:
        """One run and check of each model by itself; what went wrong, beginning with the model's name.

        With more threads than one, models must not read each other. ``session``: what the runs have.
        """
        run = self._next_run(session)

        def one(name: str) -> list[str]:
            try:
                run.model(self._request(name, **options))
                (check or self.check)(name)
            except Exception as error:
                return [f"{name}: {self.models[name]}\n{type(error).__name__}: {str(error)[:800]}"]
            return []

        with ThreadPoolExecutor(threads) as pool:
            return [failure for found in pool.map(one, list(self.models)) for failure in found]

    def step_exactly(self, step: int) -> None:
        """One run, of models that do not read each other, each by deltas and exact."""
        failures = self.step_and_check_each(threads=3, fallback="error")
        assert not failures, "\n\n".join([f"step {step}", *failures])

    def check(self, only: str | None = None) -> None:
        """Each model against the batch answer of its SQL over plain tables, EXCEPT ALL both ways: what its relation
        shows, or what is stored of it (``shown_each``)."""
        for name, sql in self.models.items():
            if only not in (None, name):
                continue
            answer, number = self.batch(name), self._checks[name]
            self._checks[name] += 1
            stored = self.stored(name) if number % self.shown_each else None
            found = self.found(name) if stored is None else stored
            assert (self.dtypes(name) if stored is not None else found.dtypes) == answer.dtypes, name
            missing, unexpected = _compared(answer, found)
            assert not missing and not unexpected, f"{name}: {sql}\nmissing {missing}\nunexpected {unexpected}"

    def _next_run(self, session: LazySession | None = None) -> Run:
        compile._CACHE.clear()  # stored plans are taken, as by another process
        self.time += 1
        for name in self.tables:
            self._store(name)
        session = session or LazySession.of(self.spark)
        return Run(session, self.storage, f"run{self.time}", self.time, lambda line: None)

    def _store(self, name: str) -> None:
        place = self.storage.collection(f"{self.schema}.{name}")
        schema = self.schemas[name]
        stored = Schema((*schema.columns, TIME_COLUMN, DIFF_COLUMN))
        log = place.create(stored)
        files: tuple[DataFile, ...] = ()
        changes = [(*row, self.time, diff) for row, diff in self._pending[name]]
        if changes:
            updates = _arrow(changes, struct(stored))
            files = (write_arrow(self.storage, place.trace_uri, updates, stored, tuple(schema.names)),)
        manifest = place.write_manifest(ModelManifest(schema=schema))
        log.commit(Commit(add=files, upper=self.time + 1, manifest=manifest))
        self._pending[name] = []

    def _request(self, name: str, **options: Any) -> ModelRequest:
        known = [*self.tables, *self.models]
        config = ModelConfig(
            fallback=options.pop("fallback", "recompute"),
            strategy=options.pop("strategy", "auto"),
            contract=options.pop("contract", None),
            arranged_by=options.pop("arranged_by", ()),
            history=self.histories.get(name),
            output=self.outputs.get(name, ""),
            adopt=options.pop("adopt", None),
        )
        return ModelRequest(
            name=f"{self.schema}.{name}",
            relation=f"`{self.schema}`.`{name}`",
            sql=self._named(self.models[name]),
            config=config,
            inputs={f"{self.schema}.{other}": "model" for other in known},
            **options,
        )

    def _named(self, sql: str) -> str:
        for name in (*self.tables, *self.models):
            sql = sql.replace("{" + name + "}", f"{self.schema}.{name}")
        return sql

    def found(self, name: str) -> DataFrame:
        """The model's relation."""
        return self.spark.table(f"{self.schema}.{name}")

    def stored(self, name: str) -> pa.Table | None:
        """The model's contents, each row with its count in the last column, read without Spark; None of types whose
        values Arrow has in another form."""
        columns = [dtype for _, dtype in self.dtypes(name)]
        if not all(_IS_SIMPLE.fullmatch(dtype) for dtype in columns):
            return None
        place = self.storage.collection(f"{self.schema}.{name}")
        return arrow_reader.contents(place, arrow_reader.log_of(place).frontiers.last)

    def dtypes(self, name: str) -> list[tuple[str, str]]:
        """The columns of what is stored of a model, as a DataFrame has them."""
        place = self.storage.collection(f"{self.schema}.{name}")
        return [(column.name, described(column.type)) for column in columns_of(place, arrow_reader.log_of(place))]

    def batch(self, name: str) -> DataFrame:
        """Spark's own answer to the model's query."""
        return self._batch(self.models[name])

    def _batch(self, sql: str) -> DataFrame:
        """The SQL over plain relations: tables from their rows, models from their own batch answers."""
        keys = {f"{self.schema}.{name}": None for name in (*self.tables, *self.models)}
        inputs = {f"{self.schema}.{name}": Input(name, schema) for name, schema in self.schemas.items()}
        text, order = template(with_run_time(parsed(self._named(sql)), inputs), keys)
        names = []
        for key in order:
            name = key.split(".")[1]
            names.append(self._table(name) if name in self.tables else _view(self._batch(self.models[name])))
        return self.spark.sql(bind_now(text, self.time).format(*names))

    def _table(self, name: str) -> str:
        """A view of the table's rows: one for all queries until they change."""
        rows, view = self._plain.get(name, ([], ""))
        if not view or rows != self.tables[name].rows:
            rows = list(self.tables[name].rows)
            self._plain[name] = rows, _view(table_of(self.spark, rows, self.tables[name].ddl))
        return self._plain[name][1]


def table_of(spark: SparkSession, rows: list[tuple[Any, ...]], ddl: str) -> DataFrame:
    """The rows, in one partition. They go by Arrow: of a list Spark makes a job that starts a Python process."""
    dtype = StructType.fromDDL(ddl)
    return spark.createDataFrame(_arrow(rows, dtype), dtype).coalesce(1) if rows else no_rows(spark, dtype)


def _arrow(rows: list[tuple[Any, ...]], dtype: StructType) -> pa.Table:
    """One row or more as Spark takes them for the type: a timestamp without a zone is one of this machine's."""
    return LocalDataToArrowConversion.convert(rows, dtype, False)


def _view(frame: DataFrame) -> str:
    name = f"oracle_{next(_NUMBERS)}"
    frame.createOrReplaceTempView(name)
    return name


class NoAnswer(Exception):
    """Spark's own batch query fails: its optimizer stumbles over some correlated subqueries below a union."""


def _compared(answer: DataFrame, found: DataFrame | pa.Table) -> tuple[list[Any], list[Any]]:
    compare = difference if isinstance(found, DataFrame) else _difference_from_stored
    try:
        return compare(answer, found)
    except _FAILED:
        if isinstance(found, DataFrame):
            found.collect()
    try:
        kept = answer.localCheckpoint()
    except _FAILED as error:
        raise NoAnswer(str(error)[:200]) from error
    return compare(kept, found)


def _difference_from_stored(answer: DataFrame, stored: pa.Table) -> tuple[list[Any], list[Any]]:
    """As ``difference``; ``stored``: rows with their counts."""
    expected = answer.toArrow()
    names = [f"c{i}" for i in range(expected.num_columns)]  # two columns may have one name
    types = pa.schema(zip(names, expected.schema.types, strict=True))
    one, other = (rows.select(range(len(names))).rename_columns(names).cast(types) for rows in (expected, stored))
    counts = pa.chunked_array([pa.repeat(pa.scalar(1, pa.int64()), one.num_rows)])
    removed = pc.negate(stored.column(len(names)))
    both = pa.concat_tables([one.append_column(DIFF, counts), other.append_column(DIFF, removed)])
    has_floats = any(pa.types.is_floating(dtype) for dtype in types.types)
    summed = _summed_rows(both) if has_floats else _summed_arrow(both)
    return [(n, row) for row, n in summed.items() if n > 0], [(-n, row) for row, n in summed.items() if n < 0]


_FAILED = (Py4JJavaError, PySparkException)
_IS_SIMPLE = re.compile(
    r"boolean|tinyint|smallint|int|bigint|float|double|decimal\(\d+,\d+\)|string|binary|date|timestamp(_ntz)?"
)
"""Types of whose values Arrow has those that are stored as it has those of an answer."""


def difference(answer: DataFrame, found: DataFrame) -> tuple[list[Any], list[Any]]:
    """Rows of which ``answer`` has more, and of which ``found`` has, as often: EXCEPT ALL both ways, on the driver."""
    both = answer.selectExpr("*", f"1L AS {DIFF}").union(found.selectExpr("*", f"-1L AS {DIFF}"))
    is_plain = all(isinstance(column.dataType, _PLAIN) for column in both.schema)
    counts = _summed_arrow(both.toArrow()) if is_plain else _summed(both)
    return [(n, row) for row, n in counts.items() if n > 0], [(-n, row) for row, n in counts.items() if n < 0]


_PLAIN = (IntegralType, BooleanType, StringType, BinaryType, DecimalType, DateType, TimestampType, TimestampNTZType)
"""Types of whose values Arrow finds the same ones equal as Spark."""


def _summed_arrow(both: pa.Table) -> Counter[str]:
    """Each row's diffs, where they do not cancel out."""
    return _summed_rows(uncancelled(both))


def _summed_rows(both: pa.Table) -> Counter[str]:
    """Each row's diffs; the last column has them."""
    counts: Counter[str] = Counter()
    for *row, diff in zip(*(column.to_pylist() for column in both.columns), strict=True):
        counts[_text(row)] += diff
    return counts


def uncancelled(table: pa.Table) -> pa.Table:
    """The different rows of all columns but the last, with its sum; without those where it is 0. NULL equals NULL."""
    *data, diff = (f"c{i}" for i in range(table.num_columns))  # two columns may have one name
    sums = table.rename_columns([*data, diff]).group_by(data, use_threads=False).aggregate([(diff, "sum")])
    return sums.filter(pc.not_equal(sums[f"{diff}_sum"], 0)).select([*data, f"{diff}_sum"])


def _summed(both: DataFrame) -> Counter[str]:
    """The same for any types, with rows whose diffs are 0."""
    counts: Counter[str] = Counter()
    for *row, diff in both.collect():
        counts[_text(row)] += diff
    return counts


def _text(value: Any) -> str:
    """The value as text that is the same for values that Spark holds equal."""
    if isinstance(value, float):
        return repr(value + 0.0)
    if isinstance(value, dict):
        return f"{{{', '.join(sorted(f'{_text(k)}: {_text(v)}' for k, v in value.items()))}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    return repr(value)


def changed(spark: SparkSession, world: World, name: str) -> Counter[tuple[Any, ...]]:
    """A model's stored contents as a multiset."""
    log = world.storage.collection(f"{world.schema}.{name}").log()
    assert log is not None
    frame = contents(spark, log, schema_of(spark.table(f"{world.schema}.{name}").schema), log.frontiers.last)
    return Counter(tuple(row) for row in frame.collect())


__all__ = ["TIME", "Sequence", "Table", "World", "changed", "difference", "table_of"]
