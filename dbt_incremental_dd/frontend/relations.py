"""The base relations that a query reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp


@dataclass(frozen=True)
class RelationName:
    """A relation's name as the query writes it, part by part and without quotes."""

    parts: tuple[str, ...]

    @property
    def key(self) -> str:
        """Its name for look-ups: lower case, joined by dots."""
        return ".".join(self.parts).lower()

    @property
    def sql(self) -> str:
        """Its name as SQL."""
        return ".".join("`" + part.replace("`", "``") + "`" for part in self.parts)


def relation_of(table: exp.Table) -> RelationName:
    """The name of a table reference."""
    return RelationName(tuple(part.name for part in table.parts))


def base_tables(tree: exp.Expr) -> Iterator[exp.Table]:
    """References to base tables, in the order of the text."""
    for table in tree.find_all(exp.Table, bfs=False):
        if isinstance(table.this, exp.Identifier) and not is_local(table):
            yield table


def is_local(table: exp.Table) -> bool:
    """Whether the reference is to a CTE that is visible where it stands in its tree."""
    if len(table.parts) != 1:
        return False
    below: exp.Expr = table
    node = table.parent
    while node is not None:
        with_ = node.args.get("with_")
        if with_ is not None and below is not with_ and _defines(with_, table.name, before=None):
            return True
        if isinstance(node, exp.With) and _defines(node, table.name, before=None if node.recursive else below):
            return True
        below, node = node, node.parent
    return False


def _defines(with_: exp.Expr, name: str, before: exp.Expr | None) -> bool:
    for cte in with_.expressions:
        if cte is before:
            return False
        if cte.alias.lower() == name.lower():
            return True
    return False
