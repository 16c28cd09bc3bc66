"""A condition on rows that others may not see, as SQL that cannot fail on one of them: the error would tell of it."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from dbt_incremental_dd.core import types
from dbt_incremental_dd.core.schema import Schema

_INTEGERS = (types.LONG, types.INTEGER, types.SHORT, types.BYTE)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_CONNECTIVES = (exp.And, exp.Or, exp.Not, exp.Paren)


@lru_cache(1000)
def safe_condition(sql: str, schema: Schema) -> str:
    """The condition in DuckDB's SQL; NULL for a row for which it cannot be computed. Comparisons of columns with
    constants stay as they are, so that DuckDB skips row groups by them."""
    return f"(\n{sql}\n)" if _cannot_fail(sql, schema) else f"TRY((\n{sql}\n))"


def _cannot_fail(sql: str, schema: Schema) -> bool:
    try:
        return _is_plain(parse_one(f"(\n{sql}\n)", read="duckdb"), schema)
    except (SqlglotError, RecursionError):
        return False


def _is_plain(node: exp.Expr, schema: Schema) -> bool:
    """Whether only constants are cast, which is done before any row is read: a text to the column's type, an integer to
    that of a column of integers."""
    if isinstance(node, _CONNECTIVES):
        return all(_is_plain(one, schema) for one in node.iter_expressions())
    if isinstance(node, _COMPARISONS):
        return _is_column(node.left, [node.right], schema) or _is_column(node.right, [node.left], schema)
    if isinstance(node, exp.In) and {key for key, value in node.args.items() if value} == {"this", "expressions"}:
        return _is_column(node.this, node.expressions, schema)
    if isinstance(node, exp.Is):
        return _is_column(node.this, [], schema) and isinstance(node.expression, exp.Null)
    return isinstance(node, exp.Boolean)


def _is_column(node: exp.Expr, constants: list[exp.Expr], schema: Schema) -> bool:
    """Whether it is a column, and each of the others a constant that is cast to its type."""
    if not isinstance(node, exp.Column) or len(node.parts) != 1 or not isinstance(node.this, exp.Identifier):
        return False
    column = schema.find(node.name)
    if column is None or not all(isinstance(one, exp.Literal) for one in constants):
        return False
    return all(one.is_string or (column.type in _INTEGERS and one.name.isdecimal()) for one in constants)
