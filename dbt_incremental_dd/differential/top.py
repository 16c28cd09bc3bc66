"""The first rows of everything, by an order: more of them are kept than are asked for, so that a change costs what it
touches. The input is read whole only where more of the kept rows have gone than were kept in reserve.

Invariant: no row of the input that is not kept comes before one that is; or all are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbt_incremental_dd.differential.state import Names, State
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Order, TopK

_LARGEST = 10_000
"""Rows that are asked for at most: they pass through the driver."""


@dataclass(frozen=True)
class KeptTop(Node):
    """Rows ``offset`` to ``offset + limit`` in the order of ``order`` and then ``ties``, which are all columns.

    ``kept``: the trace of the first rows; ``complete``: one row as long as those are all that the input has.
    """

    input: Node
    order: tuple[Order, ...]
    ties: tuple[Id, ...]
    limit: int
    offset: int
    kept: State
    complete: State

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.input.columns

    @property
    def keys(self) -> tuple[Id, ...]:
        """None: the rows of everything are one group."""
        return ()

    @property
    def needed(self) -> int:
        """So many rows must be kept, or all."""
        return self.limit + self.offset


def plan_kept_top(node: TopK, source: Node, ties: tuple[Id, ...], names: Names) -> KeptTop | None:
    """None where groups are recomputed instead: there are keys, no small limit, or columns without an order."""
    if node.keys or node.limit is None or node.limit + node.offset > _LARGEST or set(ties) != set(node.columns):
        return None
    name = names.new("top")
    kept, complete = State(f"{name}.kept", node.columns, ()), State(f"{name}.complete", (), ())
    return KeptTop(source, node.order, ties, limit=node.limit, offset=node.offset, kept=kept, complete=complete)
