"""Updates of a recursive relation, with ``dd_iteration`` and ``dd_diff``: stored before the run, and added by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow.compute as pc
from pyspark.sql import functions as F

from dbt_incremental_dd.differential.iterate import ITERATION
from dbt_incremental_dd.differential.state import State
from dbt_incremental_dd.logical.nodes import Id
from dbt_incremental_dd.render.context import Context
from dbt_incremental_dd.render.keys import Keys
from dbt_incremental_dd.render.rows import Rows, consolidated, plus
from dbt_incremental_dd.trace import limits
from dbt_incremental_dd.trace.local import Local

_WHOLE = 100_000
"""A trace of at most so many updates is read once in a run, not by keys in each iteration."""
_CHUNKS = 16
"""A table of more pieces than these is put together: each look at it takes time for each of them."""


class Updates:
    """One trace of a recursion within a run."""

    def __init__(self, context: Context, state: State, from_nothing: bool) -> None:
        self._context = context
        self._state = state
        self._trace = context.inner.of(state)
        self._stored = not from_nothing
        self._added: list[Rows] = []
        self._all: Rows | None = None

    def stored(self, keys: Keys | None) -> Rows | None:
        """What the run began with."""
        if not self._stored:
            return None
        if keys is not None and self._trace.rows <= _WHOLE:
            if self._all is None:
                self._all = self._trace.contents(new=False)
            rows = None if self._all is None else keys.restricted(self._all)
        else:
            rows = self._trace.contents(new=False, keys=keys)
        return None if rows is None else replace(rows, positive=False)

    def added(self, keys: Keys | None = None) -> Rows | None:
        """What the run has added so far."""
        self._added = together(self._added)
        parts = self._added if keys is None else [keys.restricted(rows) for rows in self._added]
        return plus(parts)

    def contents(self, keys: Keys | None) -> Rows | None:
        """All of them."""
        return plus([self.stored(keys), self.added(keys)])

    def add(self, rows: Rows) -> None:
        """Updates of one iteration."""
        self._added.append(rows)

    def store(self) -> None:
        """Appends what was added to the trace."""
        rows = self.added()
        if rows is not None:
            self._trace.append(self._context.localized(consolidated(rows)), self._context.at)


def together(parts: list[Rows]) -> list[Rows]:
    """The same rows, those on the driver as one table."""
    if len(parts) < 2 or any(part.local is None for part in parts):
        return parts
    rows = plus(parts)
    assert rows is not None
    local = rows.source
    if isinstance(local, Local) and local.table.column(0).num_chunks > _CHUNKS:
        rows = replace(rows, source=local.with_table(local.table.combine_chunks()))
    return [rows]


class Current:
    """What a variable holds now, of a run from nothing: summed up whenever more has changed than there is."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._rows: Rows | None = None
        self._since: list[Rows] = []

    def of(self, keys: Keys) -> Rows | None:
        """The keys' rows."""
        parts = [keys.restricted(rows) for rows in (self._rows, *self._since) if rows is not None]
        rows = plus(parts)
        return None if rows is None else replace(consolidated(rows), positive=True)

    def add(self, change: Rows) -> None:
        """An iteration's change."""
        self._since.append(without_iteration(change))
        held = 0 if self._rows is None else self._rows.estimate
        if sum(rows.estimate for rows in self._since) > max(held, limits.TASK_ROWS):
            rows = plus([self._rows, *self._since])
            assert rows is not None
            self._rows, self._since = self._context.materialize(consolidated(rows)), []


def until(rows: Rows | None, iteration: int) -> Rows | None:
    """The rows as they are in that iteration."""
    if rows is None:
        return None
    local = rows.source
    if isinstance(local, Local):
        table = local.table.filter(pc.less_equal(local.table[ITERATION], iteration))
        rows = replace(rows, source=local.with_table(table), estimate=table.num_rows)
    else:
        rows = replace(rows, source=local.where(F.col(ITERATION) <= iteration))
    return without_iteration(rows)


def without_iteration(rows: Rows) -> Rows:
    """The rows' sums over all iterations."""
    return consolidated(rows.renamed([(name, name) for name in _data(rows)]))


def _data(rows: Rows) -> list[str]:
    return [name for name in rows.schema.names if name not in (ITERATION, "dd_diff")]


def by_iteration(context: Context, rows: Rows) -> dict[int, Rows]:
    """The rows of each iteration."""
    rows = context.materialize(rows)
    local = rows.source
    if isinstance(local, Local):
        found = pc.unique(local.table[ITERATION]).to_pylist()
        if len(found) == 1:
            return {found[0]: rows}
        tables = {i: local.table.filter(pc.equal(local.table[ITERATION], i)) for i in found}
        return {i: replace(rows, source=local.with_table(t), estimate=t.num_rows) for i, t in tables.items()}
    found = [row[0] for row in local.select(ITERATION).distinct().collect()]
    return {i: replace(rows, source=local.where(F.col(ITERATION) == i)) for i in found}


def later_keys(context: Context, rows: Rows, keys: Sequence[Id], iteration: int) -> dict[int, Rows]:
    """The keys of rows that change after that iteration, by when they do."""
    names = [*keys, ITERATION]
    local = rows.source
    if isinstance(local, Local):
        table = local.table.filter(pc.greater(local.table[ITERATION], iteration))
        rows = replace(rows, source=local.with_table(table), estimate=table.num_rows)
        if not table.num_rows:
            return {}
    else:
        rows = replace(rows, source=local.where(F.col(ITERATION) > iteration))
    rows = consolidated(rows)
    if rows.local is None and rows.estimate <= limits.LOCAL_ROWS:
        rows = context.localized(rows)
    if rows.local is not None and not rows.local.num_rows:
        return {}
    return by_iteration(context, rows.renamed([(name, name) for name in names]))
