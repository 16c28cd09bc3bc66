"""Rows where they are: on the driver, if they are there, else in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.relation.workspace import Workspace, if_few
from dbt_incremental_dd.trace.arrow import is_flat
from dbt_incremental_dd.trace.spark_reader import quoted, schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CHUNKS = 16


@dataclass(frozen=True, eq=False)
class PlacedRows:
    """Columns by name, and ``dd_diff``. ``estimate``: about how many rows at most."""

    workspace: Workspace
    rows: Table | DataFrame
    estimate: int

    @property
    def frame(self) -> DataFrame:
        """The rows in Spark."""
        return self.workspace.frame(self.rows) if isinstance(self.rows, Table) else self.rows

    @property
    def table(self) -> Table | None:
        """The rows on the driver, if they are there: for whoever writes or shows them."""
        return self.rows if isinstance(self.rows, Table) else None

    @property
    def is_local(self) -> bool:
        """Whether the rows are known: an operation on them alone needs no job."""
        return isinstance(self.rows, Table)

    @property
    def is_empty(self) -> bool:
        """Whether it is known to have no rows: on the driver, or where it has been counted."""
        return self.estimate == 0

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.rows.schema if isinstance(self.rows, Table) else schema_of(self.rows.schema)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, ``dd_diff`` among them."""
        return self.rows.schema.names if isinstance(self.rows, Table) else tuple(self.rows.columns)

    def groups_locally(self, keys: Sequence[str]) -> bool:
        """Whether the values of these columns are known, and equal on the driver as they are in Spark."""
        return isinstance(self.rows, Table) and is_flat(self.rows.schema.select(tuple(keys)))

    def has_null(self, column: str) -> bool:
        """Whether a column is known to hold NULL."""
        return isinstance(self.rows, Table) and self.rows.arrow[column].null_count > 0

    def num_rows(self) -> int:
        """How many rows there are, whatever their diffs."""
        return self.rows.num_rows if isinstance(self.rows, Table) else self.rows.count()

    def localized(self, limit: int | None = None) -> Self:
        """The same rows, computed and on the driver if they are few (``limit``); otherwise as they were."""
        limit = self.workspace.thresholds.local_rows if limit is None else limit
        if isinstance(self.rows, Table) or self.estimate > limit:
            return self
        few = if_few(self.rows, limit)
        if few is None:
            return replace(self, estimate=limit + 1)
        return replace(self, rows=few, estimate=few.num_rows)

    def collected(self) -> Self:
        """The same rows on the driver, if they are not more than estimated: of what is known to be little."""
        return self.localized(max(self.estimate, self.workspace.thresholds.found_rows))

    def materialized(self) -> Self:
        """The same rows computed once: on the driver where they are few, else in scratch files."""
        return self.localized().in_scratch()

    def in_scratch(self) -> Self:
        """The same rows, computed once into scratch files if they are in Spark."""
        if isinstance(self.rows, Table):
            return self
        frame, count = self.workspace.stored(self.rows)
        return replace(self, rows=frame, estimate=count)

    def compact(self) -> Self:
        """The same rows, in one piece if they are on the driver in many: each look at them takes time for each."""
        if isinstance(self.rows, Table) and self.rows.arrow.column(0).num_chunks > _CHUNKS:
            return replace(self, rows=self.rows.replaced(self.rows.arrow.combine_chunks()))
        return self

    def in_ranges(self, columns: Sequence[str], parts: int) -> Self:
        """The same rows, those in Spark in so many ranges of the columns' values: each becomes a file."""
        if isinstance(self.rows, Table):
            return self
        return replace(self, rows=self.rows.repartitionByRange(parts, *map(quoted, columns)))
