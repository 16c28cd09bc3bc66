"""Updates of a recursive relation, with ``dd_iteration`` and ``dd_diff``: stored before the run, and added by it."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.iterate import ITERATION
from dbt_incremental_dd.differential.state import State
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id
from dbt_incremental_dd.relation.keys import Keys
from dbt_incremental_dd.relation.relation import Relation, plus
from dbt_incremental_dd.render.context import Context

_WHOLE = 100_000
"""A trace of at most so many updates is read once in a run, not by keys in each iteration."""


class Updates:
    """One trace of a recursion within a run."""

    def __init__(self, context: Context, state: State, *, from_nothing: bool) -> None:
        self._context = context
        self._state = state
        self._trace = context.inner.of(state)
        self._stored = not from_nothing
        self._added: list[Relation] = []
        self._all: Relation | None = None

    def stored(self, keys: Keys | None) -> Relation | None:
        """What the run began with."""
        if not self._stored:
            return None
        if keys is not None and self._trace.rows <= _WHOLE:
            if self._all is None:
                self._all = self._trace.contents(new=False, positive=False)
            return None if self._all is None else keys.restricted(self._all)
        return self._trace.contents(new=False, keys=keys, positive=False)

    def added(self, keys: Keys | None = None) -> Relation | None:
        """What the run has added so far."""
        self._added = together(self._added)
        return plus(self._added if keys is None else [keys.restricted(rows) for rows in self._added])

    def contents(self, keys: Keys | None) -> Relation | None:
        """All of them."""
        return plus([self.stored(keys), self.added(keys)])

    def add(self, rows: Relation) -> None:
        """Updates of one iteration."""
        self._added.append(rows)

    def store(self) -> None:
        """Appends what was added to the trace."""
        rows = self.added()
        if rows is not None:
            self._trace.append(rows.consolidate().localized(), self._context.at)


def together(parts: list[Relation]) -> list[Relation]:
    """The same rows, those on the driver as one table."""
    if len(parts) < 2 or not all(part.is_local for part in parts):
        return parts
    rows = plus(parts)
    assert rows is not None
    return [rows.compact()]


class Current:
    """What a variable holds now, of a run from nothing: summed up whenever more has changed than there is."""

    def __init__(self) -> None:
        self._rows: Relation | None = None
        self._since: list[Relation] = []

    def of(self, keys: Keys) -> Relation | None:
        """The keys' rows."""
        rows = plus([keys.restricted(rows) for rows in (self._rows, *self._since) if rows is not None])
        return None if rows is None else rows.multiset()

    def add(self, change: Relation) -> None:
        """An iteration's change."""
        self._since.append(without_iteration(change))
        held = 0 if self._rows is None else self._rows.estimate
        if sum(rows.estimate for rows in self._since) > max(held, change.workspace.thresholds.task_rows):
            rows = plus([self._rows, *self._since])
            assert rows is not None
            self._rows, self._since = rows.consolidate().materialized(), []


def until(rows: Relation | None, iteration: int) -> Relation | None:
    """The rows as they are in that iteration."""
    return None if rows is None else without_iteration(rows.filter(Expr(f"{ITERATION} <= {iteration}L")))


def without_iteration(rows: Relation) -> Relation:
    """The rows' sums over all iterations."""
    return rows.columns([name for name in rows.names if name not in (ITERATION, DIFF)]).consolidate()


def later_keys(rows: Relation, keys: Sequence[Id], iteration: int) -> dict[int, Relation]:
    """The keys of rows that change after that iteration, by when they do."""
    later = rows.filter(Expr(f"{ITERATION} > {iteration}L"))
    if not later.is_empty:
        later = later.consolidate().localized()
    return {} if later.is_empty else later.columns([*keys, ITERATION]).split_by(ITERATION)
