"""How an aggregate is called, with all that may stand around the name."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.logical.expr import Expr


@dataclass(frozen=True)
class Call:
    """``order`` is what WITHIN GROUP says; ``filter`` is true of the rows that count."""

    name: str
    arguments: tuple[exp.Expr, ...]
    is_distinct: bool
    ignores_nulls: bool
    filter: Expr | None
    order: tuple[exp.Ordered, ...]

    @staticmethod
    def of(tree: exp.Expr) -> Call:
        """Raises NotExact for what is no call of an aggregate."""
        filter, order, ignores_nulls = None, (), False
        while isinstance(tree, exp.Filter | exp.WithinGroup | exp.IgnoreNulls):
            if isinstance(tree, exp.Filter):
                filter = Expr.of(tree.expression.this)
            elif isinstance(tree, exp.WithinGroup):
                order = tuple(tree.expression.expressions)
            else:
                ignores_nulls = True
            tree = tree.this
        if not isinstance(tree, exp.Anonymous):
            raise NotExact
        arguments = tuple(tree.expressions)
        if len(arguments) == 1 and isinstance(arguments[0], exp.Star):
            arguments = ()
        is_distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
        if is_distinct:
            arguments = tuple(arguments[0].expressions)
        return Call(str(tree.this).lower(), arguments, is_distinct, ignores_nulls, filter, order)
