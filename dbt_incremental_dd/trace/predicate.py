"""Predicates on the driver: comparisons of which Arrow and Spark agree for every value, LIKE, and logic over them.

Anything else is Spark's to evaluate, and so is every expression without columns: its value is asked for once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from sqlglot import exp

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.local import Local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COMPARISONS: dict[type[exp.Expression], Callable[[Any, Any], Any]] = {
    exp.EQ: pc.equal,
    exp.NEQ: pc.not_equal,
    exp.LT: pc.less,
    exp.LTE: pc.less_equal,
    exp.GT: pc.greater,
    exp.GTE: pc.greater_equal,
}
_INTEGERS = ("byte", "short", "integer", "long")
_DIGITS = 18
"""Of decimals that are compared here: with all scales of such, a common type has room for both sides."""


class _ForSpark(Exception):
    """The expression is not among those that are evaluated here."""


@dataclass(frozen=True)
class _Value:
    """Values of a column, or one constant."""

    data: pa.ChunkedArray | pa.Scalar
    type: str


def truth(rows: Local, predicate: Expr) -> pa.ChunkedArray | None:
    """True, false or NULL for each row; None where Spark has to tell."""
    try:
        return _Evaluation(rows).truth(predicate.tree)
    except _ForSpark:
        return None


class _Evaluation:
    """Over one table; every result has its rows."""

    def __init__(self, rows: Local) -> None:
        self._rows = rows
        self._types = {column.name: column.type for column in rows.schema}

    def truth(self, tree: exp.Expression) -> pa.ChunkedArray:
        """True, false or NULL for each row. Raises _ForSpark."""
        found = self._truth(tree)
        return pc.invert(found) if tree.args.get("negate") else found

    def _truth(self, tree: exp.Expression) -> pa.ChunkedArray:
        if isinstance(tree, exp.Paren):
            return self.truth(tree.this)
        if isinstance(tree, exp.And):
            return pc.and_kleene(self.truth(tree.left), self.truth(tree.right))
        if isinstance(tree, exp.Or):
            return pc.or_kleene(self.truth(tree.left), self.truth(tree.right))
        if isinstance(tree, exp.Not):
            return pc.invert(self.truth(tree.this))
        if isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null):
            return pc.is_null(self._column(tree.this).data)
        if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
            low = self._compared(pc.greater_equal, tree.this, tree.args["low"])
            return pc.and_kleene(low, self._compared(pc.less_equal, tree.this, tree.args["high"]))
        if isinstance(tree, exp.In) and tree.expressions and not tree.args.get("query"):
            return self._among(tree.this, tree.expressions)
        if isinstance(tree, exp.Like):
            return self._like(tree.this, tree.expression)
        compare = _COMPARISONS.get(type(tree))
        if compare is not None:
            return self._compared(compare, tree.this, tree.expression)
        flag = self._column(tree)
        if flag.type != "boolean":
            raise _ForSpark
        return flag.data

    def _among(self, item: exp.Expression, values: list[exp.Expression]) -> pa.ChunkedArray:
        found = self._compared(pc.equal, item, values[0])
        for value in values[1:]:
            found = pc.or_kleene(found, self._compared(pc.equal, item, value))
        return found

    def _like(self, item: exp.Expression, pattern: exp.Expression) -> pa.ChunkedArray:
        """LIKE with ``%`` for any characters; other patterns are Spark's."""
        value, wanted = self._column(item), self._value(pattern)
        text = wanted.data.as_py() if isinstance(wanted.data, pa.Scalar) else None
        if value.type != "string" or not isinstance(text, str) or set(text) & set("_\\"):
            raise _ForSpark
        parts = [re.escape(part) for part in text.split("%")]
        return pc.match_substring_regex(value.data, f"(?s)^{'.*'.join(parts)}\\z")

    def _compared(
        self, compare: Callable[[Any, Any], Any], left: exp.Expression, right: exp.Expression
    ) -> pa.ChunkedArray:
        one, other = self._value(left), self._value(right)
        constant = isinstance(one.data, pa.Scalar) and isinstance(other.data, pa.Scalar)
        if constant or not _is_comparable(one.type, other.type):
            raise _ForSpark
        return compare(_widened(one, other), _widened(other, one))

    def _value(self, tree: exp.Expression) -> _Value:
        expr = Expr.of(tree)
        return self._column(tree) if expr.refs else _constant(self._rows.spark, expr.sql)

    def _column(self, tree: exp.Expression) -> _Value:
        name = Expr.of(tree).as_column
        if name is None or name not in self._types or arrow_type(self._types[name]) is None:
            raise _ForSpark
        return _Value(self._rows.table[name], self._types[name])


def _is_comparable(one: str, other: str) -> bool:
    """Whether the two types are compared alike here and in Spark."""
    if one in _INTEGERS or _is_short_decimal(one):
        return other in _INTEGERS or _is_short_decimal(other)
    return one == other and one in ("string", "date", "boolean")


def _is_short_decimal(type: str) -> bool:
    return type.startswith("decimal(") and int(type[8:].split(",")[0]) <= _DIGITS


def _widened(value: _Value, other: _Value) -> pa.ChunkedArray | pa.Scalar:
    """In a type that holds both values: decimals are compared by all their digits."""
    if not value.type.startswith("decimal(") and not other.type.startswith("decimal("):
        return value.data
    scale = max(_scale(value.type), _scale(other.type))
    return pc.cast(value.data, pa.decimal128(38, scale))


def _scale(type: str) -> int:
    return int(type[:-1].split(",")[1]) if type.startswith("decimal(") else 0


_CONSTANTS: dict[tuple[str, str, str], _Value] = {}


def _constant(spark: SparkSession, sql: str) -> _Value:
    """The value of an expression without columns, in Spark, which needs no job for it."""
    key = (sql, spark.conf.get("spark.sql.session.timeZone") or "", spark.conf.get("spark.sql.ansi.enabled") or "")
    if key not in _CONSTANTS:
        try:
            frame = spark.sql(f"SELECT {sql} AS dd_value")
            type = str(frame.schema[0].jsonValue()["type"])
            if not _is_comparable(type, type):
                raise _ForSpark
            (row,) = frame.collect()
        except PySparkException as error:  # such as a division by zero, which is an error only where there are rows
            raise _ForSpark from error
        _CONSTANTS[key] = _Value(pa.scalar(row[0], arrow_type(type)), type)
    return _CONSTANTS[key]
