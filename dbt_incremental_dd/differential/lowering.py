"""What a rule is: how an operator of the logical plan becomes one of the differential plan. It may stand in any file;
``lower`` has a line for it."""

from __future__ import annotations

from typing import Protocol, TypeVar

from dbt_incremental_dd.differential.state import Names, OutputState, Types
from dbt_incremental_dd.logical.node import Node

N = TypeVar("N", bound=Node, contravariant=True)


class Lowering(Protocol):
    """One pass over a plan, as a rule sees it."""

    @property
    def types(self) -> Types:
        """Of the logical plan's operators."""

    @property
    def names(self) -> Names:
        """For states, in the order in which operators are met."""

    def lower(self, node: Node) -> Node:
        """The differential form of ``node`` and all below it; of one that several read, one."""

    def stored_as_output(self, node: Node) -> OutputState | None:
        """Where the operator's former output can be read, if it is the model's own."""


class Rule(Protocol[N]):
    """A rule for one kind of node."""

    def __call__(self, node: N, lowering: Lowering, /) -> Node:
        """The node in the differential plan, over inputs that are lowered. Raises what ``lowering.types`` raises."""
