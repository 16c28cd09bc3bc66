"""Expressions on the driver: those of which Arrow's value is Spark's, for every value of the columns.

Anything else is Spark's to evaluate, and so is every expression without columns: its value is asked for once. Where
Spark would raise an error, or give NULL instead of one, it is asked, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import reduce as fold

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import BOOLEAN, INTEGER, INTEGERS, Decimal, Struct, Type
from dbt_incremental_dd.local import arithmetic, functions, higher_order, predicates
from dbt_incremental_dd.local.cases import case_value
from dbt_incremental_dd.local.casts import cast, type_of
from dbt_incremental_dd.local.coercion import shortest
from dbt_incremental_dd.local.functions import arrays, moments, patterns
from dbt_incremental_dd.local.intervals import interval_of, later
from dbt_incremental_dd.local.lists import Lists
from dbt_incremental_dd.local.syntax import as_call, binary, body_of, variable
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import Constants, NotExact, Value, giving_up
from dbt_incremental_dd.local.vectors import repeated
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.literals import Verbatim
from dbt_incremental_dd.logical.notes import noted
from dbt_incremental_dd.trace.arrow import arrow_type

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
    exp.RegexpLike: patterns.matches,
}
_UNARY: dict[type[exp.Expr], Callable[[Value], Value]] = {
    exp.Neg: arithmetic.negate,
    exp.BitwiseNot: arithmetic.invert_bits,
}

_MAKERS = frozenset({"array", "map", "named_struct"})


def truth(rows: Table, predicate: Expr, constants: Constants) -> pa.ChunkedArray:
    """True, false or NULL for each row. Raises NotExact."""
    with _giving_up(predicate):
        return predicates.truth(predicate.tree, _Evaluation.of(rows, constants))


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
        if arrow_type(found.type) is None:
            raise NotExact(f"{expr.sql} is a {found.type}")
        return Value(repeated(found, self._rows), found.type)


def constant(expr: Expr, literals: Constants) -> Value:
    """The value of an expression without columns, of literals whose values are known. Raises NotExact."""
    with _giving_up(expr):
        if not literals.has_usual_types:
            raise NotExact("the session has decimals of its own")
        found = _OfLiterals(literals, _ONE_ROW, Schema(())).value(expr.tree)
        return Value(repeated(found, 1)[0], found.type)


@contextmanager
def _giving_up(expr: Expr) -> Iterator[None]:
    """Arrow's own errors are of values that do not fit: Spark decides what becomes of them."""
    with giving_up(expr.sql):
        try:
            yield
        except (pa.ArrowException, SqlglotError) as error:
            raise NotExact(f"{expr.sql}: {error}") from error


def _printed(tree: exp.Expr) -> Expr:
    """The tree's text, kept with it: to print it takes longer than to evaluate it for a few rows."""
    return noted(tree, Expr.of)


def _is_made(tree: exp.Expr) -> bool:
    """Whether it is an array, a map or a struct of its arguments."""
    return isinstance(tree, exp.Anonymous) and str(tree.this).lower() in _MAKERS


def _cast_type(tree: exp.Expr) -> Type:
    """The type that a CAST is to."""
    return type_of(tree.args["to"].sql(dialect="spark"))


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
    def rows(self) -> int:
        return int(self._table.num_rows)

    @property
    def zone(self) -> str:
        return self._constants.time_zone

    def value(self, tree: exp.Expr) -> Value:
        """The expression's value for each row, or one for all."""
        kind = type(tree)
        if kind is exp.Paren:
            return self.value(tree.this)
        if kind is exp.Column:
            return self._column(tree)
        expr = _printed(tree)
        if not expr.refs and not _is_made(tree):
            return self._constants.value_of(expr.sql)
        found = self._known.get(expr.sql)
        if found is None:
            try:
                found = self._known[expr.sql] = self._computed(tree, kind)
            except NotExact as why:  # told of the smallest part
                raise why if why.args else NotExact(expr.sql) from why
        return found

    def _computed(self, tree: exp.Expr, kind: type[exp.Expr]) -> Value:
        """Of the values of its operands."""
        if kind in predicates.LOGIC:
            return Value(predicates.truth(tree, self), BOOLEAN)
        if isinstance(tree, exp.Add | exp.Sub) and isinstance(tree.right, Verbatim) and tree.right.is_interval:
            interval = interval_of(str(tree.right.this))
            return later(self.value(tree.left), interval if kind is exp.Add else -interval, self.zone)
        if kind in _OPERATORS and isinstance(tree, exp.Binary):
            return _OPERATORS[kind](self._operand(tree.left, tree.right), self._operand(tree.right, tree.left))
        if isinstance(tree, exp.DPipe):
            return self._call("concat", [tree.left, tree.right])
        if kind in _UNARY:
            return _UNARY[kind](self.value(tree.this))
        return self._special(tree)

    def _special(self, tree: exp.Expr) -> Value:
        """Of what has a syntax of its own, and of calls."""
        match tree:
            case exp.Cast() if not tree.args.get("format"):
                is_tried = bool(tree.args.get("safe"))
                return cast(self.value(tree.this), noted(tree, _cast_type), self.zone, wraps=not is_tried)
            case exp.Case():
                branches = [(branch.this, branch.args["true"]) for branch in tree.args["ifs"]]
                if tree.this is not None:
                    branches = [(binary(exp.EQ, tree.this, value), then) for value, then in branches]
                return case_value(branches, tree.args.get("default"), self)
            case exp.If():
                return case_value([(tree.this, tree.args["true"])], tree.args.get("false"), self)
            case exp.Bracket() if len(tree.expressions) == 1:
                return arrays.element(self.value(tree.this), self.value(tree.expressions[0]), self.zone)
            case exp.Dot() if isinstance(tree.expression, exp.Identifier):
                return _field(self.value(tree.this), tree.expression.name)
            case exp.Extract():
                return moments.extract(self.zone, tree.this.name, self.value(tree.expression))
            case exp.Anonymous():
                return self._call(str(tree.this).lower(), tree.expressions)
        name, arguments = as_call(tree)
        return self._call(name, arguments)

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

    def constant(self, tree: exp.Expr) -> Value | None:
        expr = _printed(tree)
        return None if expr.refs else self._constants.value_of(expr.sql)

    def split(self, holds: pa.ChunkedArray) -> tuple[_Evaluation, _Evaluation]:
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
            return case_value([(arguments[0], arguments[1])], arguments[2], self)
        if name == "nvl2" and len(arguments) == 3:
            is_there = exp.Not(this=binary(exp.Is, arguments[0], exp.Null()))
            return case_value([(is_there, arguments[1])], arguments[2], self)
        if name == "mod" and len(arguments) == 2:
            return self.value(binary(exp.Mod, *arguments))
        if arguments and isinstance(arguments[0], exp.Var):
            return self._with_unit(name, *arguments)
        if len(arguments) == 2 and isinstance(arguments[1], exp.Lambda):
            return self._applied(name, arguments[0], arguments[1])
        values = [self.value(argument) for argument in arguments]
        if name in _MAKERS and values:  # of constants, too, it is one of each row
            values[-1] = Value(repeated(values[-1], self.rows), values[-1].type)
        return functions.call(name, values, self._constants)

    def _applied(self, name: str, array: exp.Expr, body: exp.Lambda) -> Value:
        """``transform(array, x -> body)`` and the like; ``(x, i) -> body`` of an element and its place."""
        value = self.value(array)
        type, lists = arrays.element_type(value), Lists.of(value.data)
        names = [variable(item.name) for item in body.expressions]
        function = higher_order.FUNCTIONS.get(name)
        if function is None or len(names) > function.variables:
            raise NotExact
        tree, rows = noted(body, body_of), pa.array(lists.rows)
        read = [column for column in self._schema if column.name in _printed(tree).refs]
        columns = {column.name: self._table[column.name].take(rows) for column in read}
        given = zip(names, (lists.entries[0], pa.array(lists.places, pa.int32())), (type, INTEGER), strict=False)
        for variable_name, entries, kind in given:
            columns[variable_name] = entries
            read.append(Column(variable_name, kind))
        over = _Evaluation(self._constants, pa.table(columns), Schema(tuple(read)))
        return function.apply(lists, type, over.value(tree))

    def _with_unit(self, name: str, unit: exp.Expr, *arguments: exp.Expr) -> Value:
        """``datediff(DAY, a, b)`` and ``dateadd(DAY, 1, a)``."""
        first, second = (self.value(argument) for argument in arguments)
        if name in ("datediff", "date_diff", "timestampdiff"):
            return moments.difference(self.zone, unit.name, first, second)
        return moments.moved(self.zone, unit.name, first, second)

    def _column(self, tree: exp.Expr) -> Value:
        """A column, or a field of a struct in one."""
        assert isinstance(tree, exp.Column)
        name, *fields = (part.name for part in tree.parts)
        if name not in self._types or arrow_type(self._types[name]) is None:
            raise NotExact
        return fold(_field, fields, Value(self._table[name], self._types[name]))


_ONE_ROW = pa.table({"dd_row": pa.nulls(1)})


class _OfLiterals(_Evaluation):
    """Over one row, of which each literal is a column: operators leave what has none to ``Constants``."""

    def value(self, tree: exp.Expr) -> Value:
        if isinstance(tree, exp.Paren):
            return self.value(tree.this)
        try:
            found = self._constants.value_of(_printed(tree).sql)
        except NotExact:
            found = self._computed(tree, type(tree))
        return self._of_all(found)

    def _of_all(self, constant: Value) -> Value:
        return Value(repeated(constant, self.rows), constant.type)

    def constant(self, tree: exp.Expr) -> Value | None:
        return None

    def _over(self, table: pa.Table) -> _Evaluation:
        return _OfLiterals(self._constants, table, self._schema)

    def _call(self, name: str, arguments: list[exp.Expr]) -> Value:
        """Where some argument has to be a constant, all but one are. In a branch to which the row does not come, the
        type counts, which is that of one row."""
        try:
            return super()._call(name, arguments)
        except NotExact:
            if not self.rows:
                found = _OfLiterals(self._constants, _ONE_ROW, self._schema)._call(name, arguments)
                return Value(repeated(found, 1).slice(0, 0), found.type)
            if len(arguments) < 2 or self.rows != 1 or any(isinstance(a, exp.Var | exp.Lambda) for a in arguments):
                raise
        columns = [self.value(argument) for argument in arguments]
        scalars = [Value(value.data[0], value.type) for value in columns]
        for place, column in enumerate(columns):
            with suppress(NotExact):
                return functions.call(name, [*scalars[:place], column, *scalars[place + 1 :]], self._constants)
        raise NotExact


def _field(value: Value, name: str) -> Value:
    """A struct's field, NULL where there is no struct; names are the same in any case."""
    fields = value.type.fields if isinstance(value.type, Struct) else ()
    found = [field for field in fields if field.name.lower() == name.lower()]
    if len(found) != 1 or isinstance(value.data, pa.Scalar):
        raise NotExact
    return Value(pc.struct_field(value.data, found[0].name), found[0].type)
