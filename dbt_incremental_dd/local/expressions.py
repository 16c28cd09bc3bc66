"""Expressions on the driver: those of which Arrow's value is Spark's, for every value of the columns.

Anything else is Spark's to evaluate, and so is every expression without columns: its value is asked for once. Where
Spark would raise an error, or give NULL instead of one, it is asked, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce as fold
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.types import BOOLEAN, INTEGERS, STRING, VOID, Decimal, Struct
from dbt_incremental_dd.local import decimals, functions
from dbt_incremental_dd.local.table import Table, row_numbers
from dbt_incremental_dd.local.value import Constants, NotExact, Value
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.trace.arrow import same_values, value_type

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


_SAFE = {exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Paren, *_LOGIC}
_NULL = Value(pa.scalar(None), VOID)
_TEXT = "dd_text"


def truth(rows: Table, predicate: Expr, constants: Constants) -> pa.ChunkedArray:
    """True, false or NULL for each row. Raises NotExact."""
    with _giving_up(predicate):
        return _Evaluation.of(rows, constants).truth(predicate.tree)


def evaluate(rows: Table, expr: Expr, constants: Constants) -> Value:
    """The expression's value for each row, a column of its type. Raises NotExact."""
    with _giving_up(expr):
        found = _Evaluation.of(rows, constants).value(expr.tree)
    if value_type(found.type) is None:
        raise NotExact(f"{expr.sql} is a {found.type}")
    return Value(_repeated(found, rows.num_rows), found.type)


@contextmanager
def _giving_up(expr: Expr) -> Iterator[None]:
    """Arrow's own errors are of values that do not fit: Spark decides what becomes of them."""
    try:
        yield
    except (pa.ArrowException, SqlglotError) as error:
        raise NotExact(f"{expr.sql}: {error}") from error


def _printed(tree: exp.Expr) -> Expr:
    """The tree's text, kept with it: to print it takes longer than to evaluate it for a few rows."""
    found = tree.meta.get(_TEXT)
    if not isinstance(found, Expr):
        found = tree.meta[_TEXT] = Expr.of(tree)
    return found


class _Evaluation:
    """Over one table; every column that it gives has its rows."""

    def __init__(self, constants: Constants, table: pa.Table, schema: Schema) -> None:
        self._constants = constants
        self._table = table
        self._schema = schema
        self._types = {column.name: column.type for column in schema}

    @staticmethod
    def of(rows: Table, constants: Constants) -> _Evaluation:
        """Raises NotExact, as all of these do."""
        if not constants.has_usual_types:
            raise NotExact("the session has decimals of its own")
        return _Evaluation(constants, rows.arrow, rows.schema)

    def value(self, tree: exp.Expr) -> Value:
        """The expression's value for each row, or one for all."""
        kind = type(tree)
        if kind is exp.Paren:
            return self.value(tree.this)
        if kind is exp.Column:
            return self._column(tree)
        expr = _printed(tree)
        if not expr.refs:
            return self._constants.value_of(expr.sql)
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
        raise NotExact

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
            raise NotExact
        flag = self.value(tree)
        if flag.type != BOOLEAN:
            raise NotExact
        return self._whole(flag)

    def _among(self, item: exp.Expr, values: list[exp.Expr]) -> pa.ChunkedArray:
        """IN compares in one type for all of the list."""
        found = [self.value(tree) for tree in (item, *values)]
        type = decimals.common_type([value.type for value in found])
        if not decimals.is_comparable(type) or isinstance(found[0].data, pa.Scalar):
            raise NotExact
        wanted, *others = (decimals.widened(value, type).data for value in found)
        return fold(pc.or_kleene, [pc.equal(wanted, other) for other in others])

    def _like(self, item: exp.Expr, pattern: exp.Expr) -> pa.ChunkedArray:
        """LIKE with ``%`` for any characters; other patterns are Spark's."""
        value, wanted = self.value(item), self.value(pattern)
        text = wanted.data.as_py() if isinstance(wanted.data, pa.Scalar) else None
        if value.type != STRING or not isinstance(text, str) or set(text) & set("_\\"):
            raise NotExact
        parts = [re.escape(part) for part in text.split("%")]
        return pc.match_substring_regex(self._whole(value), f"(?s)^{'.*'.join(parts)}\\z")

    def _compared(self, compare: Callable[[Any, Any], Any], left: exp.Expr, right: exp.Expr) -> pa.ChunkedArray:
        one, other = self._pair(left, right)
        return compare(one.data, other.data)

    def _pair(self, left: exp.Expr, right: exp.Expr) -> tuple[Value, Value]:
        """Two values, at least one of them a column, in a type in which they can be compared."""
        one, other = self.value(left), self.value(right)
        if isinstance(one.data, pa.Scalar) and isinstance(other.data, pa.Scalar):
            raise NotExact
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
        values = [*(value for _, value in branches), *([default] if default else [])]
        if all(map(_cannot_fail, (*values, *(condition for condition, _ in branches[1:])))):
            return self._chosen(branches, default)
        places, left, parts = row_numbers(self._table.num_rows), self, []
        for condition, value in branches:
            holds = pc.fill_null(left.truth(condition), False)
            parts.append((places.filter(_flat(holds)), left._only(holds).value(value)))
            places, left = places.filter(pc.invert(_flat(holds))), left._only(pc.invert(holds))
        parts.append((places, left.value(default) if default else Value(pa.scalar(None), VOID)))
        type = decimals.common_type([value.type for _, value in parts])
        pieces = [_flat(_repeated(decimals.widened(value, type), len(where))) for where, value in parts]
        order = pc.sort_indices(pa.concat_arrays([where for where, _ in parts]))
        return Value(pa.chunked_array([pa.concat_arrays(pieces).take(order)]), type)

    def _chosen(self, branches: Sequence[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None) -> Value:
        """The same where everything can be evaluated for all rows."""
        values = [*(self.value(value) for _, value in branches), self.value(default) if default else _NULL]
        type = decimals.common_type([value.type for value in values])
        *wanted, found = (decimals.widened(value, type).data for value in values)
        for (condition, _), value in reversed(list(zip(branches, wanted, strict=True))):
            found = pc.if_else(pc.fill_null(self.truth(condition), False), value, found)
        return Value(found, type)

    def _only(self, mask: pa.ChunkedArray) -> _Evaluation:
        return _Evaluation(self._constants, self._table.filter(mask), self._schema)

    def _call(self, name: str, arguments: list[exp.Expr]) -> Value:
        if name == "if" and len(arguments) == 3:
            return self._case([(arguments[0], arguments[1])], arguments[2])
        return functions.call(name, [self.value(argument) for argument in arguments])

    def _column(self, tree: exp.Expr) -> Value:
        """A column, or a field of a struct in one."""
        assert isinstance(tree, exp.Column)
        name, *fields = (part.name for part in tree.parts)
        if name not in self._types or value_type(self._types[name]) is None:
            raise NotExact
        return fold(_field, fields, Value(self._table[name], self._types[name]))

    def _whole(self, value: Value) -> pa.ChunkedArray:
        return _repeated(value, self._table.num_rows)


def _field(value: Value, name: str) -> Value:
    """A struct's field, NULL where there is no struct; names are the same in any case."""
    fields = value.type.fields if isinstance(value.type, Struct) else ()
    found = [field for field in fields if field.name.lower() == name.lower()]
    if len(found) != 1 or isinstance(value.data, pa.Scalar):
        raise NotExact
    return Value(pc.struct_field(value.data, found[0].name), found[0].type)


def _cannot_fail(tree: exp.Expr) -> bool:
    """Whether no value of any row makes the expression an error."""
    return all(type(node) in _SAFE for node in tree.walk())


def _repeated(value: Value, rows: int) -> pa.ChunkedArray:
    if isinstance(value.data, pa.Scalar):
        return pa.chunked_array([pa.repeat(value.data, rows)])
    return value.data


def _flat(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)
