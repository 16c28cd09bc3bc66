"""Where the relations of one run are computed: its Spark session, and what it leaves there until its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING
from uuid import uuid4
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql.types import CharType, StringType, StructField, StructType, VarcharType

from dbt_incremental_dd.core.plain_text import Moments
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.vectors import row_numbers
from dbt_incremental_dd.local.zones import moments_in
from dbt_incremental_dd.relation.arrow_engine import ArrowEngine
from dbt_incremental_dd.relation.constants import SparkConstants
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.relation.room import FOR_PLANS
from dbt_incremental_dd.relation.spark_engine import SparkEngine
from dbt_incremental_dd.storage.uris import spark_uri
from dbt_incremental_dd.trace.found_rows import FoundRows
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.spark_folder import write_folder
from dbt_incremental_dd.trace.spark_reader import no_rows, schema_of, struct
from dbt_incremental_dd.trace.spark_to_arrow import to_arrow
from dbt_incremental_dd.trace.write import describe_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_WITHOUT_SESSION = 5


class Workspace:
    """``storage`` holds the scratch files. ``found``: what the run has found by key in other workspaces."""

    def __init__(self, session: LazySession, storage: Storage, found: FoundRows | None = None) -> None:
        self.session = session
        self.storage = storage
        self.found = found or FoundRows()
        self.in_spark = SparkEngine()
        self._frames: WeakKeyDictionary[Table, DataFrame] = WeakKeyDictionary()
        self._scratch: list[str] = []
        self._views: list[str] = []
        self._at_least = 0

    @cached_property
    def constants(self) -> SparkConstants:
        """What expressions without columns are in the session."""
        return SparkConstants(self.session)

    @cached_property
    def on_driver(self) -> ArrowEngine:
        """The engine of what is on the driver."""
        return ArrowEngine(self.constants, self.thresholds)

    @cached_property
    def moments(self) -> Moments:
        """When clocks show a local time in the session's time zone."""
        return moments_in(lambda: self.session.dialect[0])

    @property
    def thresholds(self) -> Thresholds:
        """How much is worth doing on the driver."""
        return self.storage.thresholds

    @property
    def spark(self) -> SparkSession:
        """The session, opened if it is not yet."""
        return self.session.spark

    def most(self, amount: int) -> int:
        """How much is computed on the driver, of which so much would be with an open session: several times as much
        takes less time than to open one."""
        return max(self._at_least, amount if self.session.is_open else amount * _WITHOUT_SESSION)

    @contextmanager
    def reading_all(self, size: float) -> Iterator[None]:
        """For a plan that reads at most ``size`` bytes. If the driver has room for them, ``most`` is at least
        ``built_rows`` meanwhile. Waits for room that other plans have taken."""
        most = self.thresholds.built_rows
        if self._at_least or not most:
            yield
            return
        with FOR_PLANS.taking(size) as has_room:
            self._at_least = most if has_room else 0
            try:
                yield
            finally:
                self._at_least = 0

    def frame(self, table: Table) -> DataFrame:
        """The table in Spark; made when it is first asked for."""
        if table not in self._frames:
            self._frames[table] = local_frame(self.spark, table)
        return self._frames[table]

    def view(self, frame: DataFrame) -> str:
        """A temporary view of the frame, of a name that nobody else uses; dropped at the end of the run."""
        name = f"dd_view_{uuid4().hex}"
        frame.createOrReplaceTempView(name)
        self._views.append(name)
        return name

    def stored(self, frame: DataFrame) -> tuple[DataFrame, int]:
        """The frame, computed once into scratch files; and its rows."""
        uri = self.storage.scratch("delta")
        self._scratch.append(uri)
        write_folder(self.storage, frame, uri)
        files = describe_folder(self.storage, uri)
        if not files:
            return no_rows(self.spark, frame.schema), 0
        paths = (spark_uri(f"{uri}/{file.path}") for file in files)
        return self.spark.read.schema(frame.schema).parquet(*paths), sum(file.rows for file in files)

    def close(self) -> None:
        """Removes views and scratch files."""
        for name in self._views:
            self.spark.catalog.dropTempView(name)
        for uri in self._scratch:
            self.storage.remove(uri)
        self._views.clear()
        self._scratch.clear()
        self.session.memory.save()


def if_few(frame: DataFrame, limit: int) -> Table | None:
    """The frame's rows, computed and brought to the driver; None where there are more than ``limit``, or more bytes
    than the session lets a driver have."""
    try:
        found = to_arrow(frame, limit + 1)
    except Exception as error:
        if "maxResultSize" in str(error):
            return None
        raise
    return Table(found, schema_of(frame.schema)) if found.num_rows <= limit else None


def local_frame(spark: SparkSession, table: Table) -> DataFrame:
    """A DataFrame of a driver-side table, with exactly the types of its schema, in one partition.

    What is computed of one partition needs no exchange. The chunks are joined first, because Spark stops reading an
    Arrow table at an empty chunk, without an error. The types are given to Spark and not cast to afterwards: each
    renamed column below a filter doubles what Spark's optimizer infers of it.
    """
    wanted = struct(table.schema)
    if table.num_rows == 0:
        return no_rows(spark, wanted)
    return spark.createDataFrame(_whole(table.arrow.combine_chunks()), _with_plain_texts(wanted)).coalesce(1)


def _whole(arrow: pa.Table) -> pa.Table:
    """The table without slices of nested columns: PySpark fails at those of maps that are NULL."""
    for place, field in enumerate(arrow.schema):
        if pa.types.is_nested(field.type):
            arrow = arrow.set_column(place, field, arrow[place].take(row_numbers(arrow.num_rows)))
    return arrow


def _with_plain_texts(dtype: StructType) -> StructType:
    """Columns of CHAR and VARCHAR as STRING, which is what Spark computes with."""
    kinds = (CharType, VarcharType)
    return StructType([StructField(f.name, StringType()) if isinstance(f.dataType, kinds) else f for f in dtype])
