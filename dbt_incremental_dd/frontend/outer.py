"""The outside of a correlated block: a distinct relation of the values that the block reads from it.

The block is computed for all of them at once. They are carried through it as further columns: keys of each group,
partition and limit (Neumann and Kemper, "Unnesting Arbitrary Queries", BTW 2015).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dbt_incremental_dd.frontend.resolve import Found, Lookup, resolved_column
from dbt_incremental_dd.frontend.scope import Ids
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Map


@dataclass(frozen=True)
class Outer:
    """``look`` finds names of the outside as its columns ``ids``; ``domain`` has their values, in the same order."""

    domain: Node
    ids: tuple[Id, ...]
    look: Lookup

    def fresh(self, ids: Ids) -> tuple[Node, tuple[Id, ...]]:
        """The domain under ids of its own."""
        carried = tuple(ids.new() for _ in self.ids)
        outputs = zip(carried, (Expr.column(id) for id in self.domain.columns), strict=True)
        return Map(self.domain, tuple(outputs)), carried

    def seen_as(self, carried: tuple[Id, ...]) -> Lookup:
        """Names of the outside as columns that are carried along."""
        by = dict(zip(self.ids, carried, strict=True))

        def look(parts: tuple[str, ...]) -> Found | None:
            found = self.look(parts)
            if found is None or not isinstance(found[0], exp.Column) or found[0].name not in by:
                return None
            return resolved_column(by[found[0].name]), found[1]

        return look
