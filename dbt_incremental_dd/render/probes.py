"""Rows that one model's run has found by key, kept until its end: the same keys are looked for again and again.

A join's paths and its old and new contents touch the same few keys. What was found once is filtered, and only the
keys that are new are looked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce as fold
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import TIME, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.render.arranged import Arrangements
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.driver_reader import find_rows
from dbt_incremental_dd.trace.files import matching
from dbt_incremental_dd.trace.log import Log

if TYPE_CHECKING:
    from dbt_incremental_dd.render.context import Context


@dataclass(frozen=True)
class _Found:
    """All updates with one of the values."""

    values: pa.Array
    table: pa.Table


class Probes:
    """``needed``: for each collection the columns that the plan reads of it; they are fetched together.

    Updates after the end of the run's interval are left out.
    """

    def __init__(self, context: Context, needed: Mapping[str, Schema]) -> None:
        self._storage = context.storage
        self._needed = needed
        self._inputs = context.inputs
        self.arrangements = Arrangements(context, needed)
        self._found: dict[tuple[str, str], _Found] = {}

    def rows(self, log: Log, schema: Schema, keys: Mapping[str, Sequence[Any]], t: Time) -> pa.Table | None:
        """The updates up to ``t`` with one of the values in each column; None where they are too many to look for."""
        files = self.files(log)
        if len(keys) == 1:
            ((column, values),) = keys.items()
            wanted = pa.array(values, arrow_type(log.schema.select((column,)).columns[0].type))
            table = self._of(log, column, wanted, files)
            table = None if table is None else table.filter(pc.is_in(table[column], value_set=wanted))
        else:
            table = self._read(log, files, schema, keys)
        if table is None:
            return None
        table = table.select(list(schema.names))
        return table.filter(pc.less_equal(table[TIME], t)) if any(file.last > t for file in files) else table

    def files(self, log: Log) -> tuple[DataFile, ...]:
        """Those that are searched: their updates add up at both ends of the run's interval."""
        read = self._inputs[log.name]
        return log.summands(read.t1, first=read.t0)

    def _of(self, log: Log, column: str, values: pa.Array, files: Sequence[DataFile]) -> pa.Table | None:
        """What was found so far by that column, these values among them."""
        known = self._found.get((log.name, column))
        new = values if known is None else values.filter(pc.invert(pc.is_in(values, value_set=known.values)))
        if known is not None and not len(new):
            return known.table
        table = self._read(log, files, self._needed[log.name], {column: new.to_pylist()})
        if table is None:
            return None
        if known is not None:
            new, table = pa.concat_arrays([known.values, new]), pa.concat_tables([known.table, table])
        self._found[log.name, column] = _Found(new, table)
        return table

    def _read(
        self, log: Log, files: Sequence[DataFile], schema: Schema, keys: Mapping[str, Sequence[Any]]
    ) -> pa.Table | None:
        column = self.arrangements.column_for(log.name, keys)
        if column is not None:
            table = self.arrangements.find(log, column, keys[column])
            others = {name: values for name, values in keys.items() if name != column}
            return fold(_among, others.items(), table).select(list(schema.names))
        files = matching(files, keys)
        found = find_rows(self._storage, log.uri, files, schema, keys)
        if found is not None:
            self.arrangements.note(log, keys, files, found.num_rows)
        return found


def _among(table: pa.Table, wanted: tuple[str, Sequence[Any]]) -> pa.Table:
    column, values = wanted
    return table.filter(pc.is_in(table[column], value_set=pa.array(values, table.schema.field(column).type)))
