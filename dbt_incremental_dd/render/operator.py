"""What an operator's renderer is, and what it may ask: of the run of its plan, and of a recursion that it is in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from dbt_incremental_dd.differential.iterate import Iterate, Variable
from dbt_incremental_dd.differential.join import DeltaJoin, Path
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.relation.keys import Keys
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.render.context import Context
from dbt_incremental_dd.render.probes import Probes


class OperatorRun(Protocol):
    """One plan over one interval: its operators' deltas, each computed once, and contents."""

    context: Context
    event: Event | None
    """What it is that changes, inside of a recursion."""

    @property
    def probes(self) -> Probes:
        """What the run has found by key."""

    def delta(self, node: Node) -> Relation | None:
        """The node's delta; None if nothing below it changed."""

    def small_delta(self, node: Node) -> Relation | None:
        """The node's delta, kept because it will be read several times."""

    def delta_at_hand(self, node: Node, limit: int | None = None) -> Relation | None:
        """The node's delta, on the driver if it has at most ``limit`` rows."""

    def contents(self, node: Node, *, new: bool, keys: Keys | None = None) -> Relation | None:
        """The node's contents at the end of the interval (``new``) or at its start, restricted to ``keys``."""

    def paths(self, node: DeltaJoin) -> tuple[Path, ...]:
        """The join's paths, in the order in which to follow them."""

    def recursion(self, node: Iterate) -> Recursion:
        """The recursion within this run."""

    def within(self, context: Context, root: Node, event: Event) -> OperatorRun:
        """The run of a plan inside of a recursion, for one event."""


N = TypeVar("N", bound=Node, contravariant=True)


class Operator(Protocol[N]):
    """The renderer of one kind of node: a module with these two functions."""

    def delta(self, node: N, run: OperatorRun) -> Relation | None:
        """The change of the operator's output over ``(t0, t1]``; None if it is certainly empty."""

    def contents(self, node: N, run: OperatorRun, *, new: bool, keys: Keys | None) -> Relation | None:
        """The operator's output as of ``t1`` (``new``) or ``t0``, restricted to ``keys``; None: empty."""


class Recursion(Protocol):
    """One Iterate within one run, as its variables and whoever reads them see it."""

    context: Context
    """Of the inside, where nothing is from nothing."""
    from_nothing: bool

    def run(self) -> None:
        """Brings all variables to their fixed point, once. Raises RecursionLimit, TooCostly."""

    def change(self, name: str) -> Relation | None:
        """By how much the run has changed the variable at its fixed point."""

    def contents(self, name: str, *, new: bool, keys: Keys | None) -> Relation | None:
        """The variable at its fixed point."""

    def updates(self, name: str, keys: Keys | None) -> Relation | None:
        """The variable's updates of all iterations so far."""

    def operand_delta(self, number: int) -> Relation | None:
        """The change of what does not recur."""

    def operand_contents(self, number: int, *, new: bool, keys: Keys | None) -> Relation | None:
        """The rows of what does not recur."""

    def within(self, variable: Variable, event: Event) -> OperatorRun:
        """The run of the variable's source for one event."""


@dataclass(frozen=True)
class Event:
    """What changes inside of a recursion. ``outside``: all that does not recur; else the variable ``name`` by
    ``change``, or nothing."""

    recursion: Recursion
    outside: bool = False
    name: str = ""
    change: Relation | None = None
