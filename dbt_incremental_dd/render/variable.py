"""One variable of a recursion within a run: what is still to come to it, and its change in an iteration."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from dbt_incremental_dd.core.errors import RecursionLimit
from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.groups import RecomputeGroups, TopGroups, WindowGroups
from dbt_incremental_dd.differential.iterate import ITERATION, Variable
from dbt_incremental_dd.differential.reduce import Accumulate
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.keys import Keys, keys_of
from dbt_incremental_dd.relation.relation import Relation, negated, plus
from dbt_incremental_dd.render import groups
from dbt_incremental_dd.render.extreme_groups import compare, is_extreme
from dbt_incremental_dd.render.operator import Event, Recursion
from dbt_incremental_dd.render.outputs import in_out
from dbt_incremental_dd.render.reduce import finished, summed
from dbt_incremental_dd.render.updates import Current, Updates, later_keys, together, until

_MOST = 1 << 53
"""A multiplicity beyond which products and sums might overflow."""


class VariableState:
    """``output`` holds the variable's updates; ``counts`` those of its operator's input, where they are kept."""

    def __init__(self, recursion: Recursion, variable: Variable) -> None:
        self._recursion = recursion
        self._variable = variable
        self._context = recursion.context
        self.output = Updates(recursion.context, variable.trace, from_nothing=recursion.from_nothing)
        counts = variable.counts
        self._counts = Updates(recursion.context, counts, from_nothing=recursion.from_nothing) if counts else None
        self._by_extremes = is_extreme(variable)
        self._current = Current() if self._by_extremes and recursion.from_nothing else None
        self._input: list[Relation] = []
        """What the run has changed of the operator's input, where its extremes are compared."""
        self._coming: dict[int, list[Relation]] = defaultdict(list)
        self._again: dict[int, list[Relation]] = defaultdict(list)

    @property
    def next(self) -> int | None:
        """The first iteration in which there is something to do."""
        return min((*self._coming, *self._again), default=None)

    def contents(self, keys: Keys | None) -> Relation | None:
        """The variable's updates, the last change not among them until it is committed."""
        return self.output.contents(keys)

    def receive(self, rows: Relation | None, iteration: int) -> None:
        """Updates of its source; from nothing they are all of that iteration."""
        if rows is None:
            return
        names = [name for name in rows.schema.names if name not in (DIFF, self._variable.iteration)]
        rows = rows.select([*((name, name) for name in names), (ITERATION, self._variable.iteration)])
        if self._recursion.from_nothing and not rows.is_local:
            self._coming[iteration].append(rows)
            return
        for i, part in rows.split_by(ITERATION).items():
            self._coming[i].append(part)

    def begin(self) -> None:
        """An aggregate over everything has a row from the beginning, also over nothing."""
        operator = self._variable.operator
        if isinstance(operator, RecomputeGroups) and operator.global_row:
            self._again[0] = []

    def step(self, iteration: int) -> Relation | None:
        """The variable's change in that iteration; None where there is none."""
        if iteration not in self._coming and iteration not in self._again:
            return None
        coming = plus(self._coming.pop(iteration, []))
        coming = None if coming is None else _some(coming.consolidate().materialized())
        _require_small_counts(coming, self._variable.name)
        again = self._again.pop(iteration, None)
        if self._variable.operator is None or (coming is None and again is None):
            return coming
        if self._by_extremes:
            return self._compared(coming, again or [], iteration)
        return self._regrouped(coming, again or [], iteration)

    def commit(self, change: Relation) -> None:
        """All that read the variable have seen the change."""
        self.output.add(change)
        if self._current is not None:
            self._current.add(change)

    def store(self) -> None:
        """Appends what the run has changed to the traces."""
        self.output.store()
        if self._counts is not None:
            self._counts.store()

    def _regrouped(self, coming: Relation | None, again: list[Relation], iteration: int) -> Relation | None:
        """The touched groups' rows in that iteration, less what the variable holds of them."""
        if coming is not None and self._counts is not None:
            self._counts.add(coming)
        keys = self._touched(coming, again)
        new = self._found_anew(keys, iteration)
        old = until(self.output.contents(keys), iteration)
        change = plus([new, negated(old)])
        if change is None:
            return None
        return _some(_at(change.consolidate(), iteration).materialized())

    def _compared(self, coming: Relation | None, again: list[Relation], iteration: int) -> Relation | None:
        """The same for minima and maxima, of which most groups need not be found anew."""
        node = self._variable.accumulate
        assert node is not None
        touched = self._touched_rows(coming, again)
        keys = keys_of(touched, node.keys)
        held: Relation | None = None
        if self._current is not None:
            former, change = self._current.of(keys), coming
        else:
            self._input = together([*self._input, *([coming] if coming is not None else [])])
            former = self._stored(keys, iteration)
            held = until(self.output.contents(keys), iteration)
            change = until(plus([keys.restricted(rows) for rows in self._input]), iteration)
        found = compare(node, touched, change, former)
        held = held if self._current is None else found.old
        lost = None if found.lost is None else _some(found.lost.collected())
        anew = None if lost is None else self._found_anew(keys_of(lost, node.keys), iteration)
        moved = plus([found.new, anew, negated(held)])
        if moved is None:
            return None
        return _some(_at(moved.consolidate(), iteration).materialized())

    def _stored(self, keys: Keys, iteration: int) -> Relation | None:
        """The groups' rows in that iteration when the run began; those that change later are looked at then."""
        stored = self.output.stored(keys)
        if stored is None:
            return None
        self._look_again(stored, iteration)
        former = until(stored, iteration)
        return None if former is None else replace(former, positive=True)

    def _found_anew(self, keys: Keys | None, iteration: int) -> Relation | None:
        """The operator over all of the groups' rows."""
        source = self._source(keys)
        if source is not None:
            self._look_again(source, iteration)
        return self._grouped(until(source, iteration))

    def _look_again(self, rows: Relation, iteration: int) -> None:
        for later, found in later_keys(rows, self._variable.keys, iteration).items():
            self._again[later].append(found)

    def _touched(self, coming: Relation | None, again: list[Relation]) -> Keys | None:
        names = self._variable.keys
        return keys_of(self._touched_rows(coming, again), names) if names else None

    def _touched_rows(self, coming: Relation | None, again: list[Relation]) -> Relation:
        """The touched groups' keys; equal ones may be among them."""
        touched = plus([rows.columns(self._variable.keys) for rows in (coming, *again) if rows is not None])
        assert touched is not None
        return touched

    def _source(self, keys: Keys | None) -> Relation | None:
        """All updates of the groups' rows."""
        if self._counts is not None:
            return self._counts.contents(keys)
        r = self._recursion.within(self._variable, Event(self._recursion))
        rows = r.contents(self._variable.source, new=True, keys=keys)
        if rows is None:
            return None
        names = [name for name in rows.schema.names if name not in (DIFF, self._variable.iteration)]
        return rows.select([*((name, name) for name in names), (ITERATION, self._variable.iteration)])

    def _grouped(self, rows: Relation | None) -> Relation | None:
        """The operator over the groups' rows."""
        node, accumulate = self._variable.operator, self._variable.accumulate
        assert node is not None
        rows = None if rows is None else rows.multiset()
        if isinstance(node, Accumulate):
            return rows if rows is None or node.threshold else rows.once()
        rows = None if rows is not None and rows.is_local and rows.is_empty else rows
        if rows is None and not (isinstance(node, RecomputeGroups) and node.global_row):
            return None
        if accumulate is not None and rows is not None and rows.is_local:
            return _accumulated(accumulate, rows)
        assert isinstance(node, RecomputeGroups | TopGroups | WindowGroups)
        return groups.computed(node, rows, self._context)


def _some(rows: Relation) -> Relation | None:
    """The rows, if there are any."""
    return None if rows.is_empty else rows


def _require_small_counts(rows: Relation | None, name: str) -> None:
    """Raises RecursionLimit before multiplicities do not fit any more."""
    if rows is None or not rows.is_local:
        return
    if not rows.filter(Expr(f"abs({DIFF}) > {_MOST}L")).is_empty:
        raise RecursionLimit(
            f"the recursion of {name.split('.')[-1]} has rows that are there more than {_MOST:,} times",
            "Have it end: by UNION instead of UNION ALL, or by a condition on its depth.",
        )


def _at(rows: Relation, iteration: int) -> Relation:
    """The rows as updates of that iteration."""
    return rows.extend([(ITERATION, Expr(f"{iteration}L"))])


def _accumulated(node: Accumulate, rows: Relation) -> Relation:
    """An aggregate of groups of which these are all rows."""
    sums = summed(node, rows)
    pairs = [(name, name) for name in (*node.keys, *node.sums.diffs) if name != DIFF]
    pairs += [(e.id, in_out("in", e)) for e in node.extremes]
    return finished(node, sums.select(pairs))
