"""What rendering one model's run needs: a session, the interval, inputs' logs, and the operators' own traces."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.render.inner import InnerTraces
from dbt_incremental_dd.render.keys import Found
from dbt_incremental_dd.render.rows import Rows
from dbt_incremental_dd.trace import limits
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.local import if_few
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.object_store import spark_uri
from dbt_incremental_dd.trace.read import no_rows
from dbt_incremental_dd.trace.write import describe_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class InputInterval:
    """A collection that the plan reads: its log, its visible schema, and the updates that are new: ``(t0, t1]``."""

    log: Log
    schema: Schema
    t0: Time
    t1: Time


@dataclass
class Context:
    """One model between ``t0`` (BEGINNING where it is built anew) and ``t1``.

    These are the times that its contents show; each of ``inputs`` has an interval of its own, and what the run stores
    is stamped ``at``. ``output``: the model's own log.
    """

    spark: SparkSession
    storage: Storage
    t0: Time
    t1: Time
    at: Time
    inputs: Mapping[str, InputInterval]
    output: tuple[Log, Schema] | None
    inner: InnerTraces
    report: Callable[[str], None]
    former: Found = field(default_factory=Found)
    """What the output held of keys when the run began."""
    recursion_limit: int = 1_000
    """Iterations after which a recursion is taken to have no end."""
    allowance: float = math.inf
    """Seconds after which a recursion's delta is given up, because a build would have been faster."""
    once_seconds: float = 0.0
    """Of the run's, what later ones need not spend again."""
    _scratch: list[str] = field(default_factory=list)
    _views: list[str] = field(default_factory=list)

    @property
    def from_nothing(self) -> bool:
        """Whether the old contents of everything are empty."""
        return self.t0 == BEGINNING

    def localized(self, rows: Rows, limit: int | None = None) -> Rows:
        """The same rows, computed and on the driver if they are few (``limit``); otherwise as they were."""
        limit = limits.LOCAL_ROWS if limit is None else limit
        if rows.local is not None or rows.estimate > limit:
            return rows
        few = if_few(self.spark, rows.frame, limit)
        if few is None:
            return replace(rows, estimate=limit + 1)
        return replace(rows, source=few, estimate=few.table.num_rows)

    def brought(self, rows: Rows) -> Rows:
        """The same rows on the driver, if they are not more than estimated: of what is known to be little."""
        return self.localized(rows, max(rows.estimate, limits.FOUND_ROWS))

    def materialize(self, rows: Rows) -> Rows:
        """The same rows computed once: on the driver where they are few, else in scratch files."""
        rows = self.localized(rows)
        if rows.local is not None:
            return rows
        uri = self.storage.scratch("delta")
        self._scratch.append(uri)
        schema = rows.frame.schema
        rows.frame.write.parquet(spark_uri(uri))
        files = describe_folder(self.storage, uri)
        frame = no_rows(self.spark, schema)
        if files:
            frame = self.spark.read.schema(schema).parquet(*(spark_uri(f"{uri}/{file.path}") for file in files))
        return replace(rows, source=frame, estimate=sum(file.rows for file in files))

    def empty(self, types: Sequence[tuple[str, str]]) -> DataFrame:
        """No rows, of columns with these SQL types."""
        columns = ", ".join(f"CAST(NULL AS {dtype}) AS {name}" for name, dtype in types)
        return self.spark.sql(f"SELECT {columns or 'NULL AS dd_none'} LIMIT 0")

    def view(self, frame: DataFrame) -> str:
        """A temporary view of the frame, of a name that nobody else uses; dropped at the end of the run."""
        name = f"dd_view_{uuid4().hex}"
        frame.createOrReplaceTempView(name)
        self._views.append(name)
        return name

    def close(self) -> None:
        """Removes views and scratch files."""
        for name in self._views:
            self.spark.catalog.dropTempView(name)
        for uri in self._scratch:
            self.storage.remove(uri)
        self._views.clear()
        self._scratch.clear()
