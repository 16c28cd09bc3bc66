"""Recursion by differences of two times: the run's, and the iteration.

What a recursive relation holds is kept as updates ``(row, iteration, diff)``: its contents in iteration i are the sums
of those with an iteration of at most i. Its plan is cut into *variables*, each a linear plan over other variables and
over what does not recur, and at most one operator on top that looks at groups of rows (Reduce, Distinct, TopK, ...).
In linear plans the iteration is a column like any other, the greatest of those of the rows that were put together; so
an update is joined with what other variables hold in all iterations, and its results happen in that iteration or later.
A group is computed again in those iterations in which its rows change, and in no other (McSherry, Murray, Isaacs and
Isard, *Differential Dataflow*, CIDR 2013).
"""

from __future__ import annotations

from dataclasses import dataclass

from dbt_incremental_dd.differential.reduce import Accumulate
from dbt_incremental_dd.differential.state import State
from dbt_incremental_dd.logical.node import Id, Node

ITERATION = "dd_iteration"
"""BIGINT, from 0 on: the iteration in which an update of a recursive relation happens."""


@dataclass(frozen=True)
class Operand(Node):
    """Operand number ``number`` of the Iterate, read inside of it."""

    number: int
    ids: tuple[Id, ...]

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.ids


@dataclass(frozen=True)
class Reading(Node):
    """A variable's updates: ``outputs`` pairs an id with a column of its trace; ``iteration`` is the iteration's id.

    ``lag`` is 1 where the variable is seen as it was in the iteration before.
    """

    variable: str
    lag: int
    outputs: tuple[tuple[Id, Id], ...]
    iteration: Id

    @property
    def columns(self) -> tuple[Id, ...]:
        return (*(id for id, _ in self.outputs), self.iteration)


@dataclass(frozen=True)
class Variable:
    """``source`` has the columns of what recurs and ``iteration``. ``trace`` keeps the variable's own columns and
    ``dd_iteration``.

    ``operator``, over the rows of ``source``, makes rows of groups of equal ``keys``; None: the variable is its source.
    ``accumulate`` is the same operator for rows on the driver, where it can be. With ``counts`` the operator only needs
    to know how often each row is there, which is kept.
    """

    name: str
    source: Node
    iteration: Id
    operator: Node | None
    keys: tuple[Id, ...]
    accumulate: Accumulate | None
    trace: State
    counts: State | None

    @property
    def columns(self) -> tuple[Id, ...]:
        """Without the iteration."""
        return self.trace.columns[:-1]


@dataclass(frozen=True)
class Output:
    """A binding of the recursion: the variable that is it, and the trace's column of each of the binding's columns."""

    binding: str
    variable: str
    columns: tuple[tuple[str, Id], ...]


@dataclass(frozen=True)
class Iterate(Node):
    """Bindings kept at their fixed point. ``variables`` are in the order in which an iteration computes them."""

    operands: tuple[Node, ...]
    variables: tuple[Variable, ...]
    outputs: tuple[Output, ...]
    limit: int | None

    @property
    def columns(self) -> tuple[Id, ...]:
        return ()

    @property
    def states(self) -> tuple[State, ...]:
        """All that it stores."""
        return tuple(s for v in self.variables for s in (v.trace, v.counts) if s is not None)

    def output(self, binding: str) -> Output:
        """The binding of that name."""
        return next(output for output in self.outputs if output.binding == binding)
