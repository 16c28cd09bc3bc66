"""Expressions on the driver: those of which Arrow's value is Spark's, for every value of the columns.

Anything else is Spark's to evaluate, and so is every expression without columns: its value is asked for once. Where
Spark would raise an error, or give NULL instead of one, it is asked, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce as fold

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.types import BOOLEAN, INTEGERS, VOID, Decimal, Struct, Type
from dbt_incremental_dd.local import arithmetic, comparing, functions
from dbt_incremental_dd.local.casts import cast, type_of
from dbt_incremental_dd.local.coercion import common_type, is_comparable, shortest, widened
from dbt_incremental_dd.local.functions import moments, patterns, text
from dbt_incremental_dd.local.intervals import interval_of, later
from dbt_incremental_dd.local.syntax import as_call, binary
from dbt_incremental_dd.local.table import Table, row_numbers
from dbt_incremental_dd.local.value import Constants, NotExact, Value
from dbt_incremental_dd.local.vectors import flat, repeated
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.literals import Verbatim
from dbt_incremental_dd.trace.arrow import value_type

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_OPERATORS: dict[type[exp.Expr], Callable[[Value, Value], Value]] = {
    exp.Add: arithmetic.add,
    exp.Sub: arithmetic.subtract,
    exp.Mul: arithmetic.multiply,
    exp.Div: arithmetic.divide,
    exp.IntDiv: arithmetic.whole_quotient,
    exp.Mod: arithmetic.remainder,
    exp.BitwiseAnd: arithmetic.bitwise(pc.bit_wise_and),
    exp.BitwiseOr: arithmetic.bitwise(pc.bit_wise_or),
    exp.BitwiseXor: arithmetic.bitwise(pc.bit_wise_xor),
    exp.BitwiseLeftShift: arithmetic.shift(np.left_shift),
    exp.BitwiseRightShift: arithmetic.shift(np.right_shift),
    exp.DPipe: text.concat,
    exp.RegexpLike: patterns.matches,
}
_UNARY: dict[type[exp.Expr], Callable[[Value], Value]] = {
    exp.Neg: arithmetic.negate,
    exp.BitwiseNot: arithmetic.invert_bits,
}
_DISTINCT = (exp.NullSafeEQ, exp.NullSafeNEQ)
_LIKE: dict[type[exp.Expr], Callable[..., Value]] = {exp.Like: patterns.like, exp.ILike: patterns.ilike}
_LOGIC = (exp.And, exp.Or, exp.Not, exp.Is, exp.Between, exp.In, exp.Escape, *_LIKE, *_DISTINCT, *_COMPARISONS)
_SAFE = {exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Paren, *_LOGIC} - {exp.Escape, *_LIKE}
_TEXT, _TYPE, _FAILS = "dd_text", "dd_type", "dd_fails"


def truth(rows: Table, predicate: Expr, constants: Constants) -> pa.ChunkedArray:
    """True, false or NULL for each row. Raises NotExact."""
    with _giving_up(predicate):
        return _Evaluation.of(rows, constants).truth(predicate.tree)


def evaluate(rows: Table, expr: Expr, constants: Constants) -> Value:
    """The expression's value for each row, a column of its type. Raises NotExact."""
    return Evaluation(rows, constants).of(expr)


class Evaluation:
    """Of several expressions over the same rows: what they have in common is computed once."""

    def __init__(self, rows: Table, constants: Constants) -> None:
        """Raises NotExact, as all of these do."""
        self._rows = rows.num_rows
        self._values = _Evaluation.of(rows, constants)

    def of(self, expr: Expr) -> Value:
        """The expression's value for each row, a column of its type."""
        with _giving_up(expr):
            found = self._values.value(expr.tree)
        if value_type(found.type) is None:
            raise NotExact(f"{expr.sql} is a {found.type}")
        return Value(repeated(found, self._rows), found.type)


def constant(expr: Expr, literals: Constants) -> Value:
    """The value of an expression without columns, of literals whose values are known. Raises NotExact."""
    with _giving_up(expr):
        if not literals.has_usual_types:
            raise NotExact("the session has decimals of its own")
        one_row = pa.table({"dd_row": pa.nulls(1)})
        found = _OfLiterals(literals, one_row, Schema(())).value(expr.tree)
        return Value(repeated(found, 1)[0], found.type)


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


def _cast_type(tree: exp.Cast) -> Type:
    """The type that a CAST is to, kept with it."""
    found = tree.meta.get(_TYPE)
    if not isinstance(found, Type):
        found = tree.meta[_TYPE] = type_of(tree.args["to"].sql(dialect="spark"))
    return found


class _Evaluation:
    """Over one table; every column that it gives has its rows."""

    def __init__(self, constants: Constants, table: pa.Table, schema: Schema) -> None:
        self._constants = constants
        self._table = table
        self._schema = schema
        self._types = {column.name: column.type for column in schema}
        self._known: dict[str, Value] = {}
        """What has been computed, by its text."""

    @staticmethod
    def of(rows: Table, constants: Constants) -> _Evaluation:
        """Raises NotExact, as all of these do."""
        if not constants.has_usual_types:
            raise NotExact("the session has decimals of its own")
        return _Evaluation(constants, rows.arrow, rows.schema)

    @property
    def _zone(self) -> str:
        return self._constants.time_zone

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
        found = self._known.get(expr.sql)
        if found is None:
            found = self._known[expr.sql] = self._computed(tree, kind)
        return found

    def _computed(self, tree: exp.Expr, kind: type[exp.Expr]) -> Value:
        """Of the values of its operands."""
        if kind in _LOGIC:
            return Value(self.truth(tree), BOOLEAN)
        if isinstance(tree, exp.Add | exp.Sub) and isinstance(tree.right, Verbatim) and tree.right.is_interval:
            interval = interval_of(str(tree.right.this))
            return later(self.value(tree.left), interval if kind is exp.Add else -interval, self._zone)
        if kind in _OPERATORS and isinstance(tree, exp.Binary):
            return _OPERATORS[kind](self._operand(tree.left, tree.right), self._operand(tree.right, tree.left))
        if kind in _UNARY:
            return _UNARY[kind](self.value(tree.this))
        return self._special(tree)

    def _special(self, tree: exp.Expr) -> Value:
        """Of what has a syntax of its own, and of calls."""
        match tree:
            case exp.Cast() if not tree.args.get("format"):
                is_tried = bool(tree.args.get("safe"))
                return cast(self.value(tree.this), _cast_type(tree), self._zone, wraps=not is_tried)
            case exp.Case():
                branches = [(branch.this, branch.args["true"]) for branch in tree.args["ifs"]]
                if tree.this is not None:
                    branches = [(binary(exp.EQ, tree.this, value), then) for value, then in branches]
                return self._case(branches, tree.args.get("default"))
            case exp.If():
                return self._case([(tree.this, tree.args["true"])], tree.args.get("false"))
            case exp.Extract():
                return moments.extract(self._zone, tree.this.name, self.value(tree.expression))
            case exp.Anonymous():
                return self._call(str(tree.this).lower(), tree.expressions)
        name, arguments = as_call(tree)
        return self._call(name, arguments)

    def truth(self, tree: exp.Expr) -> pa.ChunkedArray:
        """True, false or NULL for each row."""
        found = self._truth(tree)
        return pc.invert(found) if tree.args.get("negate") else found

    def _truth(self, tree: exp.Expr) -> pa.ChunkedArray:
        match tree:
            case exp.Paren():
                return self.truth(tree.this)
            case exp.And():
                return pc.and_kleene(self.truth(tree.left), self.truth(tree.right))
            case exp.Or():
                return pc.or_kleene(self.truth(tree.left), self.truth(tree.right))
            case exp.Not():
                return pc.invert(self.truth(tree.this))
            case exp.Is():
                return self._is(tree.this, tree.expression)
            case exp.Between() if not tree.args.get("symmetric"):
                low = self._compared(">=", tree.this, tree.args["low"])
                return pc.and_kleene(low, self._compared("<=", tree.this, tree.args["high"]))
            case exp.In() if tree.expressions and not tree.args.get("query"):
                return self._among(tree.this, tree.expressions)
            case exp.Like() | exp.ILike():
                return _LIKE[type(tree)](self.value(tree.this), self.value(tree.expression)).data
            case exp.Escape() if type(tree.this) in _LIKE and not tree.this.args.get("negate"):
                return self._like_with_escape(tree.this, tree.expression)
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                found = comparing.same(*self._pair(tree.left, tree.right))
                return found if isinstance(tree, exp.NullSafeEQ) else pc.invert(found)
        compare = _COMPARISONS.get(type(tree))
        if compare is not None:
            return self._compared(compare, tree.this, tree.expression)
        if type(tree) in _LOGIC:
            raise NotExact
        flag = self.value(tree)
        if flag.type != BOOLEAN:
            raise NotExact
        return self._whole(flag)

    def _is(self, item: exp.Expr, what: exp.Expr) -> pa.ChunkedArray:
        if isinstance(what, exp.Null):
            return pc.is_null(self._whole(self.value(item)))
        if not isinstance(what, exp.Boolean):
            raise NotExact
        return pc.fill_null(pc.equal(self.truth(item), pa.scalar(bool(what.this))), False)

    def _among(self, item: exp.Expr, values: list[exp.Expr]) -> pa.ChunkedArray:
        """IN compares in one type for all of the list."""
        found = [self.value(tree) for tree in (item, *values)]
        type = common_type([value.type for value in found])
        if not is_comparable(type) or isinstance(found[0].data, pa.Scalar):
            raise NotExact
        wanted, *others = (widened(value, type) for value in found)
        return fold(pc.or_kleene, [comparing.equal(wanted, other) for other in others])

    def _like_with_escape(self, tree: exp.Expr, escape: exp.Expr) -> pa.ChunkedArray:
        character = escape.name if isinstance(escape, exp.Literal) and escape.is_string else ""
        if len(character) != 1 or character in "%_":
            raise NotExact
        return _LIKE[type(tree)](self.value(tree.this), self.value(tree.expression), character).data

    def _compared(self, compare: str, left: exp.Expr, right: exp.Expr) -> pa.ChunkedArray:
        return comparing.COMPARISONS[compare](*self._pair(left, right))

    def _pair(self, left: exp.Expr, right: exp.Expr) -> tuple[Value, Value]:
        """Two values, at least one of them a column, in a type in which they can be compared."""
        one, other = self.value(left), self.value(right)
        if isinstance(one.data, pa.Scalar) and isinstance(other.data, pa.Scalar):
            raise NotExact
        return comparing.comparable(one, other, self._zone)

    def _operand(self, tree: exp.Expr, other: exp.Expr) -> Value:
        """A side of an arithmetic operation: a literal integer beside a decimal has only the digits that it shows."""
        value, written = self.value(tree), tree.unnest()
        literal = written.this if isinstance(written, exp.Neg) else written
        is_literal = isinstance(literal, exp.Literal) and not literal.is_string and value.type in INTEGERS
        if not is_literal or not isinstance(self.value(other).type, Decimal):
            return value
        return self._of_all(shortest(self._constants.value_of(_printed(written).sql)))

    def _of_all(self, constant: Value) -> Value:
        """A constant as a value of all rows."""
        return constant

    def _case(self, branches: Sequence[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None) -> Value:
        """Each branch for the rows that come to it, and for no others: they might raise an error."""
        values = [*(value for _, value in branches), *([default] if default else [])]
        if all(map(_cannot_fail, (*values, *(condition for condition, _ in branches[1:])))):
            return self._chosen(branches, default)
        places, left, parts = row_numbers(self._table.num_rows), self, []
        for condition, value in branches:
            holds = pc.fill_null(left.truth(condition), False)
            inside, outside = left._split(holds)
            parts.append((places.filter(flat(holds)), inside.value(value)))
            places, left = places.filter(pc.invert(flat(holds))), outside
        parts.append((places, left.value(default) if default else Value(pa.scalar(None), VOID)))
        type = common_type([value.type for _, value in parts])
        present = [part for part in parts if len(part[0])] or parts[:1]
        if len(present) == 1:
            return Value(self._whole(widened(present[0][1], type)), type)
        pieces = [flat(repeated(widened(value, type), len(where))) for where, value in present]
        order = pc.sort_indices(pa.concat_arrays([where for where, _ in present]))
        return Value(pa.chunked_array([pa.concat_arrays(pieces).take(order)]), type)

    def _chosen(self, branches: Sequence[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None) -> Value:
        """The same where everything can be evaluated for all rows."""
        values = [
            *(self.value(value) for _, value in branches),
            self.value(default) if default else Value(pa.scalar(None), VOID),
        ]
        type = common_type([value.type for value in values])
        *wanted, found = (widened(value, type).data for value in values)
        for (condition, _), value in reversed(list(zip(branches, wanted, strict=True))):
            found = pc.if_else(pc.fill_null(self.truth(condition), False), value, found)
        return Value(found, type)

    def _split(self, holds: pa.ChunkedArray) -> tuple[_Evaluation, _Evaluation]:
        """Over the rows for which the condition holds, and over the others."""
        number = pc.sum(holds).as_py() or 0
        nothing = self._over(self._table.slice(0, 0))
        if number == len(holds):
            return self, nothing
        if not number:
            return nothing, self
        return self._over(self._table.filter(holds)), self._over(self._table.filter(pc.invert(holds)))

    def _over(self, table: pa.Table) -> _Evaluation:
        return _Evaluation(self._constants, table, self._schema)

    def _call(self, name: str, arguments: list[exp.Expr]) -> Value:
        if name == "if" and len(arguments) == 3:
            return self._case([(arguments[0], arguments[1])], arguments[2])
        if name == "mod" and len(arguments) == 2:
            return self.value(binary(exp.Mod, *arguments))
        if arguments and isinstance(arguments[0], exp.Var):
            return self._with_unit(name, *arguments)
        return functions.call(name, [self.value(argument) for argument in arguments], self._constants)

    def _with_unit(self, name: str, unit: exp.Expr, *arguments: exp.Expr) -> Value:
        """``datediff(DAY, a, b)`` and ``dateadd(DAY, 1, a)``."""
        first, second = (self.value(argument) for argument in arguments)
        if name in ("datediff", "date_diff", "timestampdiff"):
            return moments.difference(self._zone, unit.name, first, second)
        return moments.moved(self._zone, unit.name, first, second)

    def _column(self, tree: exp.Expr) -> Value:
        """A column, or a field of a struct in one."""
        assert isinstance(tree, exp.Column)
        name, *fields = (part.name for part in tree.parts)
        if name not in self._types or value_type(self._types[name]) is None:
            raise NotExact
        return fold(_field, fields, Value(self._table[name], self._types[name]))

    def _whole(self, value: Value) -> pa.ChunkedArray:
        return repeated(value, self._table.num_rows)


class _OfLiterals(_Evaluation):
    """Over one row, of which each literal is a column: operators leave what has none to ``Constants``."""

    def value(self, tree: exp.Expr) -> Value:
        if isinstance(tree, exp.Paren):
            return self.value(tree.this)
        try:
            found = self._constants.value_of(_printed(tree).sql)
        except NotExact:
            return self._computed(tree, type(tree))
        return self._of_all(found)

    def _of_all(self, constant: Value) -> Value:
        return Value(repeated(constant, 1), constant.type)

    def _over(self, table: pa.Table) -> _Evaluation:
        raise NotExact("a literal is one of all rows")


def _field(value: Value, name: str) -> Value:
    """A struct's field, NULL where there is no struct; names are the same in any case."""
    fields = value.type.fields if isinstance(value.type, Struct) else ()
    found = [field for field in fields if field.name.lower() == name.lower()]
    if len(found) != 1 or isinstance(value.data, pa.Scalar):
        raise NotExact
    return Value(pc.struct_field(value.data, found[0].name), found[0].type)


def _cannot_fail(tree: exp.Expr) -> bool:
    """Whether no value of any row makes the expression an error; kept with it."""
    found = tree.meta.get(_FAILS)
    if found is None:
        found = tree.meta[_FAILS] = any(type(node) not in _SAFE for node in tree.walk())
    return not found
