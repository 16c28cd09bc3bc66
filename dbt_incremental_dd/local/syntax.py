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
        case exp.Transform():
            return "transform", [tree.this, tree.expression]
    raise NotExact


def body_of(function: exp.Expr) -> exp.Expr:
    """The body of a lambda expression, its variables as columns (``variable``)."""
    names = {item.name.lower(): item.name for item in function.expressions}
    inner = [item.name.lower() for other in function.this.find_all(exp.Lambda) for item in other.expressions]
    if names.keys() & set(inner):
        raise NotExact("a variable in place of another one")
    body = exp.Paren(this=function.this.copy())
    for name in list(body.find_all(exp.Identifier)):
        if name.name.lower() in names and not _is_named(name):
            name.replace(exp.Column(this=exp.to_identifier(variable(names[name.name.lower()]))))
    return body


def _is_named(name: exp.Identifier) -> bool:
    """Whether it is a column's name, a field's, or that of a variable where it is introduced."""
    parent = name.parent
    if isinstance(parent, exp.Lambda):
        return name.arg_key == "expressions"
    return isinstance(parent, exp.Column) or (isinstance(parent, exp.Dot) and name.arg_key == "expression")


def variable(name: str) -> str:
    """The column of a variable's values."""
    return f"dd_variable_{name}"


def binary(kind: type[exp.Binary], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """An operator between operands that stay where they are in their own trees."""
    return kind(this=left.copy(), expression=right.copy())


def _given(*arguments: exp.Expr | None) -> list[exp.Expr]:
    return [argument for argument in arguments if argument is not None]
