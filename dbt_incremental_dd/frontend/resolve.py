"""Resolving a scalar expression: its column names become ids, and nothing else of it changes."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.scope import Scope
from dbt_incremental_dd.logical.expr import bound_by_lambda


def resolve(tree: exp.Expression, scope: Scope, aliases: Mapping[str, exp.Expression] | None = None) -> exp.Expression:
    """A copy of the expression over ids. ``aliases``: earlier columns of the same SELECT, looked up last.

    Raises UnsupportedSQL for a name that is in neither, and for a subquery.
    """
    query = tree.find(exp.Query)
    if query is not None:
        raise UnsupportedSQL("a subquery in an expression")
    tree = _named_structs(tree.copy())
    for column in [c for c in tree.find_all(exp.Column) if not bound_by_lambda(c)]:
        if isinstance(column.this, exp.Star):
            continue
        value = _value(column, scope, aliases or {})
        if column is tree:
            return value
        column.replace(value)
    return tree


def _value(column: exp.Column, scope: Scope, aliases: Mapping[str, exp.Expression]) -> exp.Expression:
    parts = tuple(part.name for part in column.parts)
    found = scope.find(parts)
    if found is None:
        alias = aliases.get(parts[0].lower())
        if alias is None:
            raise UnsupportedSQL(
                f"column {'.'.join(parts)} cannot be resolved", "Check its spelling and its table's alias."
            )
        return _with_fields(exp.paren(alias.copy()), column, len(parts) - 1)
    id, fields = found
    return _with_fields(exp.column(id), column, len(fields))


def _with_fields(value: exp.Expression, column: exp.Column, fields: int) -> exp.Expression:
    for part in column.parts[len(column.parts) - fields :] if fields else ():
        value = exp.Dot(this=value, expression=part.copy())
    return value


def _named_structs(tree: exp.Expression) -> exp.Expression:
    """``struct(a, b AS c)`` takes its fields' names from its arguments; ids must not become such names."""
    for call in reversed(list(tree.find_all(exp.Anonymous))):
        name = str(call.this).lower()
        if name == "struct":
            call.replace(_named_struct(call)) if call is not tree else None
            tree = _named_struct(call) if call is tree else tree
        elif name == "arrays_zip" and any(isinstance(arg, exp.Column) for arg in call.expressions):
            raise UnsupportedSQL("arrays_zip names its fields after its arguments")
    return tree


def _named_struct(call: exp.Anonymous) -> exp.Expression:
    arguments: list[exp.Expression] = []
    for number, argument in enumerate(call.expressions, start=1):
        if isinstance(argument, exp.Star) or (isinstance(argument, exp.Column) and isinstance(argument.this, exp.Star)):
            raise UnsupportedSQL("struct(*)")
        named = isinstance(argument, exp.Alias | exp.Column | exp.Dot)
        arguments.append(exp.Literal.string(argument.alias_or_name if named else f"col{number}"))
        arguments.append(argument.this.copy() if isinstance(argument, exp.Alias) else argument.copy())
    return exp.Anonymous(this="named_struct", expressions=arguments)
