"""Calls that have a syntax of their own as calls, and others as operators."""

from __future__ import annotations

from sqlglot import exp

from dbt_incremental_dd.local.value import NotExact

_TRIMS = {"": "btrim", "BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}


def as_call(tree: exp.Expr) -> tuple[str, list[exp.Expr]]:
    """A function's name and its arguments. Raises NotExact for what is no such call."""
    match tree:
        case exp.Substring() if tree.args.get("start"):
            return "substring", _given(tree.this, tree.args["start"], tree.args.get("length"))
        case exp.Trim():
            position, characters = str(tree.args.get("position") or "").upper(), tree.expression
            if characters is None:
                return _TRIMS[position], [tree.this]
            if position:  # without one, readers differ on which argument comes first
                return f"{_TRIMS[position]} characters", [tree.this, characters]
        case exp.StrPosition() if not tree.args.get("occurrence"):
            return "locate", _given(tree.args["substr"], tree.this, tree.args.get("position"))
    raise NotExact


def binary(kind: type[exp.Binary], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """An operator between operands that stay where they are in their own trees."""
    return kind(this=left.copy(), expression=right.copy())


def _given(*arguments: exp.Expr | None) -> list[exp.Expr]:
    return [argument for argument in arguments if argument is not None]
