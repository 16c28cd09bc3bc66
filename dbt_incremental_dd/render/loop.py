"""Runs a recursion to its fixed point: the changes of what does not recur go in, and each iteration's changes lead to
those of later ones. Iterations in which nothing changes are not visited."""

from __future__ import annotations

import time
from dataclasses import replace

from dbt_incremental_dd.core.errors import RecursionLimit
from dbt_incremental_dd.differential.iterate import Iterate, Reading, Variable
from dbt_incremental_dd.logical.graph import by_single_rows, each_once
from dbt_incremental_dd.logical.nodes import Constant
from dbt_incremental_dd.relation.keys import Keys
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.render.operator import Event, OperatorRun
from dbt_incremental_dd.render.updates import without_iteration
from dbt_incremental_dd.render.variable import VariableState


class TooCostly(Exception):
    """Following a change through a recursion takes longer than building all of it anew."""


class Loop:
    """One Iterate within one run. ``context`` is that of the inside, where nothing is from nothing."""

    def __init__(self, node: Iterate, run: OperatorRun) -> None:
        self._node = node
        self._run = run
        self.from_nothing = run.context.from_nothing
        self.context = replace(run.context, t0=run.context.t1)
        self._operands = _Operands(node, run)
        self._states = {variable.name: VariableState(self, variable) for variable in node.variables}
        self._readers = {variable.name: _readers(variable.name, node) for variable in node.variables}
        self._done = False

    def run(self) -> None:
        """Brings all variables to their fixed point, and stores their changes. Raises RecursionLimit, TooCostly."""
        if not self._done:
            self._done = True
            started = time.monotonic()
            self._begin()
            while (iteration := self._next()) is not None:
                if time.monotonic() - started > self.context.allowance:
                    raise TooCostly
                self._iterate(iteration)
            for state in self._states.values():
                state.store()

    def updates(self, name: str, keys: Keys | None) -> Relation | None:
        """The variable's updates of all iterations so far."""
        return self._states[name].contents(keys)

    def operand_delta(self, number: int) -> Relation | None:
        """The change of what does not recur."""
        return self._operands.delta(number)

    def operand_contents(self, number: int, *, new: bool, keys: Keys | None) -> Relation | None:
        """The rows of what does not recur."""
        return self._operands.contents(number, new=new, keys=keys)

    def within(self, variable: Variable, event: Event) -> OperatorRun:
        """The run of the variable's source for one event."""
        return self._run.within(self.context, variable.source, event)

    def _next(self) -> int | None:
        found = (state.next for state in self._states.values())
        return min((iteration for iteration in found if iteration is not None), default=None)

    def _begin(self) -> None:
        for variable in self._node.variables:
            rows = self.within(variable, Event(self, outside=True)).delta(variable.source)
            self._states[variable.name].receive(rows, 0)
            if self.from_nothing:
                self._states[variable.name].begin()

    def _iterate(self, iteration: int) -> None:
        for variable in self._node.variables:
            state = self._states[variable.name]
            change = state.step(iteration)
            if change is None:
                continue
            self._require_an_end(variable, change, iteration)
            for reader, lag in self._readers[variable.name]:
                event = Event(self, name=variable.name, change=change)
                rows = self.within(reader, event).delta(reader.source)
                self._states[reader.name].receive(rows, iteration + lag)
            state.commit(change)

    def _require_an_end(self, variable: Variable, change: Relation, iteration: int) -> None:
        limit = self.context.recursion_limit if self._node.limit is None else self._node.limit
        if iteration < limit:
            return
        names = ", ".join(output.binding for output in self._node.outputs)
        own = variable.name.split(".")[-1]
        raise RecursionLimit(
            f"the recursion of {names} has not come to an end: after {limit:,} iterations {own} still changes "
            f"(by {_counted(change)}), and holds {_counted(self._held(variable))}",
            "Have it end: by a condition on its depth, or by UNION instead of UNION ALL where rows may come again. "
            "Where it only needs more iterations, raise the model's dd_recursion_limit.",
        )

    def _held(self, variable: Variable) -> Relation | None:
        rows = self._states[variable.name].contents(None)
        return None if rows is None else without_iteration(rows)

    def change(self, name: str) -> Relation | None:
        """By how much the run has changed the variable at its fixed point."""
        self.run()
        rows = self._states[name].output.added()
        return None if rows is None else without_iteration(rows)

    def contents(self, name: str, *, new: bool, keys: Keys | None) -> Relation | None:
        """The variable at its fixed point."""
        if new:
            self.run()
        updates = self._states[name].output
        rows = updates.contents(keys) if new else updates.stored(keys)
        return None if rows is None else replace(without_iteration(rows), positive=True)


class _Operands:
    """What a recursion reads that does not recur."""

    def __init__(self, node: Iterate, run: OperatorRun) -> None:
        self._operands = node.operands
        self._run = run
        self._whole: dict[int, Relation | None] = {}

    def delta(self, number: int) -> Relation | None:
        """Its change in the run."""
        return self._all(number) if self._run.context.from_nothing else self._run.delta(self._operands[number])

    def contents(self, number: int, *, new: bool, keys: Keys | None) -> Relation | None:
        """Its rows at the end of the run or before it."""
        node = self._operands[number]
        from_nothing = self._run.context.from_nothing
        if (new and from_nothing) or (isinstance(node, Constant) and not from_nothing):
            rows = self._all(number)
            return rows if rows is None or keys is None or _needs_no(keys, rows) else keys.restricted(rows)
        return self._run.contents(node, new=new, keys=keys)

    def _all(self, number: int) -> Relation | None:
        """All of its rows; computed once, unless they only have to be read."""
        if number not in self._whole:
            node = self._operands[number]
            rows = self._run.delta(node) if self._run.context.from_nothing else self._run.contents(node, new=True)
            if rows is not None:
                rows = rows.localized(self._run.context.thresholds.found_rows)
                rows = rows if id(node) in by_single_rows(node) or rows.is_local else rows.materialized()
            self._whole[number] = rows
        return self._whole[number]


def _needs_no(keys: Keys, rows: Relation) -> bool:
    """Whether a restriction is not worth its time: the rows are joined by the keys anyway."""
    return keys.advisory and not (rows.is_local and keys.is_local)


def _readers(name: str, node: Iterate) -> list[tuple[Variable, int]]:
    """The variables that read this one, and how many iterations later they see it."""
    found = []
    for variable in node.variables:
        lags = {r.lag for r in each_once(variable.source) if isinstance(r, Reading) and r.variable == name}
        found += [(variable, lag) for lag in lags]
    return found


def _counted(rows: Relation | None) -> str:
    if rows is None:
        return "nothing"
    n = rows.num_rows()
    return f"{n:,} row{'' if n == 1 else 's'}"
