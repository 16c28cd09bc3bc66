"""Groups and their aggregates."""

from __future__ import annotations

from dataclasses import dataclass

from dbt_incremental_dd.logical.expr import Expr, references
from dbt_incremental_dd.logical.node import Id, Node, require


@dataclass(frozen=True)
class Aggregate:
    """One aggregate call. ``sql`` is the whole call, the other fields its parts.

    ``function`` is in lower case (``sum``); ``args`` of ``count(*)`` are empty. ``plain`` says that ``function``,
    ``args``, ``distinct`` and ``filter`` are all there is to it (no IGNORE NULLS, no WITHIN GROUP).
    """

    id: Id
    sql: Expr
    function: str
    args: tuple[Expr, ...]
    distinct: bool = False
    filter: Expr | None = None
    plain: bool = True


@dataclass(frozen=True)
class Reduce(Node):
    """Groups of equal ``keys`` (NULLs are equal), and the aggregates over each.

    ``global_row``: without GROUP BY there is always one row, also over empty input.
    """

    input: Node
    keys: tuple[Id, ...]
    aggregates: tuple[Aggregate, ...]
    global_row: bool = False

    def __post_init__(self) -> None:
        require(self, set(self.keys), self.input.columns)
        for aggregate in self.aggregates:
            require(self, aggregate.sql.refs, self.input.columns)

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.keys + tuple(aggregate.id for aggregate in self.aggregates)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return tuple(aggregate.sql for aggregate in self.aggregates)

    def needed_columns(self, wanted: frozenset[Id]) -> tuple[frozenset[Id], ...]:
        return (frozenset(self.keys) | references(aggregate.sql for aggregate in self._kept(wanted)),)

    def pruned(self, wanted: frozenset[Id], inputs: tuple[Node, ...]) -> Reduce:
        return Reduce(inputs[0], self.keys, self._kept(wanted), self.global_row)

    def _kept(self, wanted: frozenset[Id]) -> tuple[Aggregate, ...]:
        """One aggregate stays where there would be no column."""
        kept = tuple(aggregate for aggregate in self.aggregates if aggregate.id in wanted)
        return kept or (() if self.keys else self.aggregates[:1])
