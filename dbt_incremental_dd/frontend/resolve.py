"""Resolving a scalar expression: its column names become ids, and nothing else of its meaning changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.scope import Named, Scope
from dbt_incremental_dd.logical.expr import bound_by_lambda
from dbt_incremental_dd.logical.node import Id

Found = tuple[exp.Expr, int]
"""What a dotted name means, and how many of its last parts are fields of that."""
Lookup = Callable[[tuple[str, ...]], Found | None]
_LIKE_AN_ID = re.compile(r"c\d+", re.IGNORECASE)


def in_scope(scope: Scope) -> Lookup:
    """Names of the columns of FROM."""

    def look(parts: tuple[str, ...]) -> Found | None:
        found = scope.find(parts)
        return (resolved_column(found[0]), len(found[1])) if found else None

    return look


def in_aliases(aliases: Mapping[str, exp.Expr]) -> Lookup:
    """Aliases of a select list, given in lower case; they stand for what they name."""

    def look(parts: tuple[str, ...]) -> Found | None:
        value = aliases.get(parts[0].lower())
        if value is None:
            return None
        simple = isinstance(value, exp.Column | exp.Literal | exp.Anonymous | exp.Window | exp.Paren)
        return (value.copy() if simple else exp.paren(value.copy()), len(parts) - 1)

    return look


def first_of(*lookups: Lookup) -> Lookup:
    """The first of several that knows a name."""
    return lambda parts: next((found for look in lookups if (found := look(parts)) is not None), None)


def resolved_column(id: Id) -> exp.Column:
    """A column that stands in a tree by its id already."""
    column: exp.Column = exp.column(id)
    column.meta["resolved"] = True
    return column


def resolve(tree: exp.Expr, look: Lookup, scope: Scope | None = None) -> exp.Expr:
    """A copy of the expression over ids; ``scope`` tells what ``*`` means inside a call.

    Raises UnsupportedSQL for a name that nobody knows, and for a subquery.
    """
    if tree.find(exp.Query, exp.Exists):
        raise UnsupportedSQL("a subquery in an expression")
    holder = exp.Tuple(expressions=[tree.copy()])
    _rename_lambda_variables(holder)
    _expand_stars(holder, scope)
    _name_structs(holder)
    for column in [c for c in holder.find_all(exp.Column) if not c.meta.get("resolved") and not bound_by_lambda(c)]:
        if not isinstance(column.this, exp.Star):
            column.replace(_value(column, look))
    result: exp.Expr = holder.expressions[0].pop()
    return result


def _value(column: exp.Column, look: Lookup) -> exp.Expr:
    names = tuple(part.name for part in column.parts)
    found = look(names)
    if found is None:
        raise UnsupportedSQL(
            f"column {'.'.join(names)} cannot be resolved", "Check its spelling and its table's alias."
        )
    value, fields = found
    for part in column.parts[len(column.parts) - fields :] if fields else ():
        value = exp.Dot(this=value, expression=part.copy())
    return value


def _rename_lambda_variables(tree: exp.Expr) -> None:
    """A variable that is called like an id would catch the column of that id."""
    for function in tree.find_all(exp.Lambda):
        for variable in function.expressions:
            if not _LIKE_AN_ID.fullmatch(variable.name):
                continue
            for name in function.this.find_all(exp.Identifier):
                is_field = isinstance(name.parent, exp.Dot) and name.arg_key == "expression"
                if name.name.lower() == variable.name.lower() and not is_field and name.arg_key != "alias":
                    name.meta["name"] = name.name
                    name.set("this", f"v_{name.name.lower()}")
            variable.set("this", f"v_{variable.name.lower()}")


def _expand_stars(tree: exp.Expr, scope: Scope | None) -> None:
    """``f(*)``, ``f(t.*)`` and ``x IN (*)`` are of all columns; only ``count(*)`` is not."""
    for star in list(tree.find_all(exp.Star)):
        item = star.parent if isinstance(star.parent, exp.Column) else star
        call = item.parent
        if not isinstance(call, exp.Anonymous | exp.Distinct | exp.In):
            raise UnsupportedSQL(f"{item.sql()} in an expression")
        if item is star and isinstance(call, exp.Anonymous) and str(call.this).lower() == "count":
            continue
        qualifier = tuple(part.name for part in item.parts[:-1]) if isinstance(item, exp.Column) else ()
        columns = scope.star(qualifier) if scope is not None and not star.args.get("except_") else None
        if columns is None:
            raise UnsupportedSQL(f"{item.sql()} in a call")
        _replace_in(call, item, columns)


def _replace_in(call: exp.Expr, item: exp.Expr, columns: tuple[Named, ...]) -> None:
    arguments: list[exp.Expr] = []
    for argument in call.expressions:
        arguments += [_aliased(c) for c in columns] if argument is item else [argument]
    call.set("expressions", arguments)


def _aliased(column: Named) -> exp.Expr:
    resolved = resolved_column(column.id)
    resolved.meta["name"] = column.name
    return resolved


def _name_structs(tree: exp.Expr) -> None:
    """``struct(a, b AS c)`` takes its fields' names from its arguments; ids must not become such names."""
    for call in reversed(list(tree.find_all(exp.Anonymous))):
        name = str(call.this).lower()
        if name == "struct":
            call.replace(_named_struct(call))
        elif name == "arrays_zip" and any(isinstance(arg, exp.Column | exp.Dot) for arg in call.expressions):
            raise UnsupportedSQL("arrays_zip names its fields after its arguments")


def _named_struct(call: exp.Anonymous) -> exp.Expr:
    arguments: list[exp.Expr] = []
    for number, argument in enumerate((argument.unnest() for argument in call.expressions), start=1):
        if isinstance(argument, exp.Bracket) and argument.expressions[0].is_string:  # x['f'], of a struct or a map
            name = argument.expressions[0].name
        else:
            named = isinstance(argument, exp.Alias | exp.Column | exp.Dot | exp.Identifier)
            name = argument.meta.get("name") or argument.alias_or_name if named else f"col{number}"
        arguments.append(exp.Literal.string(name))
        arguments.append(argument.this.copy() if isinstance(argument, exp.Alias) else argument.copy())
    return exp.Anonymous(this="named_struct", expressions=arguments)
