"""Expressions on the driver: those of which Arrow's value is Spark's, for every value of the columns.

Anything else is Spark's to evaluate, and so is every expression without columns: its value is asked for once. Where
Spark would raise an error, or give NULL instead of one, it is asked, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce as fold
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.types import BOOLEAN, INTEGERS, STRING, VOID, Decimal
from dbt_incremental_dd.local import decimals, functions
from dbt_incremental_dd.local.value import ForSpark, Value
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.trace.arrow import arrow_type, same_values
from dbt_incremental_dd.trace.local import Local
from dbt_incremental_dd.trace.read import schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_T = TypeVar("_T")

_COMPARISONS: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.EQ: pc.equal,
    exp.NEQ: pc.not_equal,
    exp.LT: pc.less,
    exp.LTE: pc.less_equal,
    exp.GT: pc.greater,
    exp.GTE: pc.greater_equal,
}
_ARITHMETIC: dict[type[exp.Expr], Callable[[Value, Value], Value]] = {
    exp.Add: decimals.add,
    exp.Sub: decimals.subtract,
    exp.Mul: decimals.multiply,
    exp.Div: decimals.divide,
    exp.Mod: decimals.remainder,
}
_LOGIC = (exp.And, exp.Or, exp.Not, exp.Is, exp.Between, exp.In, exp.Like, exp.NullSafeEQ, *_COMPARISONS)


_USUAL = {
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
}
"""What types of decimals depend on, with the values for which they are known here."""
_TEXT = "dd_text"
_SESSIONS: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()


def truth(rows: Local, predicate: Expr) -> pa.ChunkedArray | None:
    """True, false or NULL for each row; None where Spark has to tell."""
    return _asked(lambda: _Evaluation.of(rows).truth(predicate.tree))


def evaluate(rows: Local, expr: Expr) -> Value | None:
    """The expression's value for each row, a column of its type; None where Spark has to tell."""
    found = _asked(lambda: _Evaluation.of(rows).value(expr.tree))
    if found is None or arrow_type(found.type) is None:
        return None
    return Value(_repeated(found, rows.table.num_rows), found.type)


def _is_usual(spark: SparkSession) -> bool:
    """Whether the session has the settings that the types here are those of."""
    if spark not in _SESSIONS:
        _SESSIONS[spark] = all(str(spark.conf.get(name, value)).lower() == value for name, value in _USUAL.items())
    return _SESSIONS[spark]


def _asked(question: Callable[[], _T]) -> _T | None:
    try:
        return question()
    except (ForSpark, pa.ArrowException, SqlglotError):  # Arrow's errors are values that do not fit: Spark's to tell
        return None


def _printed(tree: exp.Expr) -> Expr:
    """The tree's text, kept with it: to print it takes longer than to evaluate it for a few rows."""
    found = tree.meta.get(_TEXT)
    if not isinstance(found, Expr):
        found = tree.meta[_TEXT] = Expr.of(tree)
    return found


class _Evaluation:
    """Over one table; every column that it gives has its rows."""

    def __init__(self, spark: SparkSession, table: pa.Table, schema: Schema) -> None:
        self._spark = spark
        self._table = table
        self._schema = schema
        self._types = {column.name: column.type for column in schema}

    @staticmethod
    def of(rows: Local) -> _Evaluation:
        """Raises ForSpark, as all of these do."""
        if not _is_usual(rows.spark):
            raise ForSpark
        return _Evaluation(rows.spark, rows.table, rows.schema)

    def value(self, tree: exp.Expr) -> Value:
        """The expression's value for each row, or one for all."""
        kind = type(tree)
        if kind is exp.Paren:
            return self.value(tree.this)
        if kind is exp.Column:
            return self._column(tree)
        expr = _printed(tree)
        if not expr.refs:
            return _constant(self._spark, expr.sql)
        if kind in _LOGIC:
            return Value(self.truth(tree), BOOLEAN)
        if kind in _ARITHMETIC and isinstance(tree, exp.Binary):
            return _ARITHMETIC[kind](self._operand(tree.left, tree.right), self._operand(tree.right, tree.left))
        if kind is exp.Neg:
            return decimals.negate(self.value(tree.this))
        if kind in (exp.Cast, exp.TryCast) and not tree.args.get("format"):
            return decimals.cast(self.value(tree.this), tree.args["to"].sql(dialect="spark"))
        if kind is exp.Case and tree.this is None:
            return self._case([(branch.this, branch.args["true"]) for branch in tree.args["ifs"]], tree.args["default"])
        if kind is exp.Substring and tree.args.get("start"):
            arguments = [tree.this, tree.args["start"], tree.args.get("length")]
            return self._call("substring", [argument for argument in arguments if argument is not None])
        if kind is exp.Extract:
            return self._call(tree.this.name.lower(), [tree.expression])
        if kind is exp.Anonymous:
            return self._call(str(tree.this).lower(), tree.expressions)
        raise ForSpark

    def truth(self, tree: exp.Expr) -> pa.ChunkedArray:
        """True, false or NULL for each row."""
        found = self._truth(tree)
        return pc.invert(found) if tree.args.get("negate") else found

    def _truth(self, tree: exp.Expr) -> pa.ChunkedArray:
        if isinstance(tree, exp.Paren):
            return self.truth(tree.this)
        if isinstance(tree, exp.And):
            return pc.and_kleene(self.truth(tree.left), self.truth(tree.right))
        if isinstance(tree, exp.Or):
            return pc.or_kleene(self.truth(tree.left), self.truth(tree.right))
        if isinstance(tree, exp.Not):
            return pc.invert(self.truth(tree.this))
        if isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null):
            return pc.is_null(self._whole(self.value(tree.this)))
        if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
            low = self._compared(pc.greater_equal, tree.this, tree.args["low"])
            return pc.and_kleene(low, self._compared(pc.less_equal, tree.this, tree.args["high"]))
        if isinstance(tree, exp.In) and tree.expressions and not tree.args.get("query"):
            return self._among(tree.this, tree.expressions)
        if isinstance(tree, exp.Like):
            return self._like(tree.this, tree.expression)
        if isinstance(tree, exp.NullSafeEQ):
            one, other = self._pair(tree.left, tree.right)
            return same_values(self._whole(one), self._whole(other))
        compare = _COMPARISONS.get(type(tree))
        if compare is not None:
            return self._compared(compare, tree.this, tree.expression)
        if type(tree) in _LOGIC:
            raise ForSpark
        flag = self.value(tree)
        if flag.type != BOOLEAN:
            raise ForSpark
        return self._whole(flag)

    def _among(self, item: exp.Expr, values: list[exp.Expr]) -> pa.ChunkedArray:
        """IN compares in one type for all of the list."""
        found = [self.value(tree) for tree in (item, *values)]
        type = decimals.common_type([value.type for value in found])
        if not decimals.is_comparable(type) or isinstance(found[0].data, pa.Scalar):
            raise ForSpark
        wanted, *others = (decimals.widened(value, type).data for value in found)
        return fold(pc.or_kleene, [pc.equal(wanted, other) for other in others])

    def _like(self, item: exp.Expr, pattern: exp.Expr) -> pa.ChunkedArray:
        """LIKE with ``%`` for any characters; other patterns are Spark's."""
        value, wanted = self.value(item), self.value(pattern)
        text = wanted.data.as_py() if isinstance(wanted.data, pa.Scalar) else None
        if value.type != STRING or not isinstance(text, str) or set(text) & set("_\\"):
            raise ForSpark
        parts = [re.escape(part) for part in text.split("%")]
        return pc.match_substring_regex(self._whole(value), f"(?s)^{'.*'.join(parts)}\\z")

    def _compared(self, compare: Callable[[Any, Any], Any], left: exp.Expr, right: exp.Expr) -> pa.ChunkedArray:
        one, other = self._pair(left, right)
        return compare(one.data, other.data)

    def _pair(self, left: exp.Expr, right: exp.Expr) -> tuple[Value, Value]:
        """Two values, at least one of them a column, in a type in which they can be compared."""
        one, other = self.value(left), self.value(right)
        if isinstance(one.data, pa.Scalar) and isinstance(other.data, pa.Scalar):
            raise ForSpark
        return decimals.comparable(one, other)

    def _operand(self, tree: exp.Expr, other: exp.Expr) -> Value:
        """A side of an arithmetic operation: a literal integer beside a decimal has only the digits that it shows."""
        value = self.value(tree)
        literal = tree.unnest()
        literal = literal.this if isinstance(literal, exp.Neg) else literal
        is_literal = isinstance(literal, exp.Literal) and not literal.is_string and value.type in INTEGERS
        return decimals.shortest(value) if is_literal and isinstance(self.value(other).type, Decimal) else value

    def _case(self, branches: Sequence[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None) -> Value:
        """Each branch for the rows that come to it, and for no others: they might raise an error."""
        places, left, parts = pa.array(range(self._table.num_rows), pa.int64()), self, []
        for condition, value in branches:
            holds = pc.fill_null(left.truth(condition), False)
            parts.append((places.filter(_flat(holds)), left._only(holds).value(value)))
            places, left = places.filter(pc.invert(_flat(holds))), left._only(pc.invert(holds))
        parts.append((places, left.value(default) if default else Value(pa.scalar(None), VOID)))
        type = decimals.common_type([value.type for _, value in parts])
        pieces = [_flat(_repeated(decimals.widened(value, type), len(where))) for where, value in parts]
        order = pc.sort_indices(pa.concat_arrays([where for where, _ in parts]))
        return Value(pa.chunked_array([pa.concat_arrays(pieces).take(order)]), type)

    def _only(self, mask: pa.ChunkedArray) -> _Evaluation:
        return _Evaluation(self._spark, self._table.filter(mask), self._schema)

    def _call(self, name: str, arguments: list[exp.Expr]) -> Value:
        if name == "if" and len(arguments) == 3:
            return self._case([(arguments[0], arguments[1])], arguments[2])
        return functions.call(name, [self.value(argument) for argument in arguments])

    def _column(self, tree: exp.Expr) -> Value:
        name = Expr.of(tree).as_column
        if name is None or name not in self._types or arrow_type(self._types[name]) is None:
            raise ForSpark
        return Value(self._table[name], self._types[name])

    def _whole(self, value: Value) -> pa.ChunkedArray:
        return _repeated(value, self._table.num_rows)


def _repeated(value: Value, rows: int) -> pa.ChunkedArray:
    if isinstance(value.data, pa.Scalar):
        return pa.chunked_array([pa.repeat(value.data, rows)])
    return value.data


def _flat(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


_CONSTANTS: dict[tuple[str, str, str], Value] = {}


def _constant(spark: SparkSession, sql: str) -> Value:
    """The value of an expression without columns, in Spark, which needs no job for it."""
    key = (sql, spark.conf.get("spark.sql.session.timeZone") or "", spark.conf.get("spark.sql.ansi.enabled") or "")
    if key not in _CONSTANTS:
        try:
            frame = spark.sql(f"SELECT {sql} AS dd_value")
            (column,) = schema_of(frame.schema)
            if column.type != VOID and not decimals.is_comparable(column.type):
                raise ForSpark
            (row,) = frame.collect()
        except (PySparkException, UnsupportedSQL) as error:  # such as a division by zero, an error only of rows
            raise ForSpark from error
        _CONSTANTS[key] = Value(pa.scalar(row[0], arrow_type(column.type)), column.type)
    return _CONSTANTS[key]
