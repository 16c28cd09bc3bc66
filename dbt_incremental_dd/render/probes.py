"""What one model's plan looks up by key in its inputs: in an arrangement by that key, if there is one, else in files.

A join's paths, and its old and new contents, look for the same few keys. What was found once is not looked for again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import TIME, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.relation.stored import found_by_keys
from dbt_incremental_dd.render.arranged import Arrangements
from dbt_incremental_dd.trace.arrow import among
from dbt_incremental_dd.trace.driver_reader import find_rows
from dbt_incremental_dd.trace.files import matching
from dbt_incremental_dd.trace.log import Log

if TYPE_CHECKING:
    from dbt_incremental_dd.render.context import Context


class Probes:
    """``needed``: for each collection the columns that the plan reads of it; they are fetched together.

    Updates after the end of the run's interval are left out.
    """

    def __init__(self, context: Context, needed: Mapping[str, Schema]) -> None:
        self._workspace = context.workspace
        self._needed = needed
        self._inputs = context.inputs
        self.arrangements = Arrangements(context, needed)

    def rows(self, log: Log, schema: Schema, keys: Mapping[str, Sequence[Any]], t: Time) -> pa.Table | None:
        """The updates up to ``t`` with one of the values in each column; None where they are too many to look for."""
        files = self.files(log)
        table = self._arranged(log, keys)
        if table is None:
            # What one key needs of the collection is fetched together: the plan reads it elsewhere, too.
            wanted = self._needed[log.name] if len(keys) == 1 else schema
            table = found_by_keys(self._workspace, log, files, wanted, keys, partial(self._read, log))
        if table is None:
            return None
        table = table.select(list(schema.names))
        return table.filter(pc.less_equal(table[TIME], t)) if any(file.last > t for file in files) else table

    def files(self, log: Log) -> tuple[DataFile, ...]:
        """Those that are searched: their updates add up at both ends of the run's interval."""
        read = self._inputs[log.name]
        return log.summands(read.t1, first=read.t0)

    def _arranged(self, log: Log, keys: Mapping[str, Sequence[Any]]) -> pa.Table | None:
        """The same where the collection is arranged by one of the columns."""
        column = self.arrangements.column_for(log, keys)
        table = None if column is None else self.arrangements.find(log, column, keys[column])
        return None if table is None else among(table, {name: keys[name] for name in keys if name != column})

    def _read(
        self, log: Log, files: Sequence[DataFile], schema: Schema, keys: Mapping[str, Sequence[Any]]
    ) -> pa.Table | None:
        found = find_rows(self._workspace.storage, log.uri, files, schema, keys)
        if found is not None:
            self.arrangements.note(log, keys, matching(files, keys), found.num_rows)
        return found
