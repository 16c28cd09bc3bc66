"""NOT over conditions that hold ``IN (SELECT ...)``: pushed down to these, as Spark's optimizer does."""

from __future__ import annotations

from typing import TypeGuard

from sqlglot import exp


def is_in_query(tree: exp.Expr | None) -> TypeGuard[exp.In]:
    """Whether it is IN over a query."""
    return isinstance(tree, exp.In) and tree.args.get("query") is not None


def without_not(tree: exp.Expr) -> tuple[exp.Expr, bool]:
    """What stands under parentheses and NOTs, and whether these negate it."""
    negated = False
    while isinstance(tree, exp.Paren | exp.Not):
        negated = negated != isinstance(tree, exp.Not)
        tree = tree.this
    return tree, negated


def negations_pushed(tree: exp.Expr) -> exp.Expr:
    """The tree with each NOT over IN at the IN itself, where AND, OR and NOT are all that stands between."""
    if isinstance(tree, exp.Not) and any(is_in_query(found) for found in tree.find_all(exp.In)):
        inner, negated = without_not(tree)
        if is_in_query(inner):
            return exp.Not(this=inner.copy()) if negated else inner.copy()
        if negated and isinstance(inner, exp.And | exp.Or):
            kind = exp.Or if isinstance(inner, exp.And) else exp.And
            sides = [negations_pushed(exp.Not(this=exp.paren(side.copy()))) for side in (inner.left, inner.right)]
            return exp.paren(kind(this=sides[0], expression=sides[1]))
    if isinstance(tree, exp.Query):
        return tree
    for child in list(tree.iter_expressions()):
        made = negations_pushed(child)
        if made is not child:
            child.replace(made)
    return tree


def has_not_in(tree: exp.Expr) -> bool:
    """Whether a condition has NOT IN over a query, besides those in its own subqueries."""
    pushed = negations_pushed(exp.Tuple(expressions=[tree.copy()]))
    found = [one for one in pushed.find_all(exp.In) if is_in_query(one) and not one.find_ancestor(exp.Query)]
    return any(isinstance(one.parent, exp.Not) for one in found)
