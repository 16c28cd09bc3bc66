"""Window functions on the driver, by DuckDB: those that mean the same there as in Spark, over columns that both order
and add up alike. Anything else is Spark's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import DOUBLE, INTEGER, INTEGERS, LONG, Decimal, Type
from dbt_incremental_dd.duck.connections import database
from dbt_incremental_dd.duck.connections import error as duckdb_error
from dbt_incremental_dd.duck.sql import duckdb_type
from dbt_incremental_dd.local.coercion import as_decimal
from dbt_incremental_dd.local.expressions import evaluate
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import Constants, NotExact
from dbt_incremental_dd.logical.expr import Expr, keyword
from dbt_incremental_dd.trace.arrow import arrow_type, is_ordered, is_plain

_NUMBERS = {"row_number": "ROW_NUMBER", "rank": "RANK", "dense_rank": "DENSE_RANK"}
_OF_PEERS = {"sum": "SUM", "count": "COUNT", "min": "MIN", "max": "MAX"}
_AVERAGES = ("avg", "mean")
_OF_ROWS = {"first": "FIRST_VALUE", "first_value": "FIRST_VALUE", "last": "LAST_VALUE", "last_value": "LAST_VALUE"}
_BESIDE = {"lag": "LAG", "lead": "LEAD"}
NAMES = frozenset((*_NUMBERS, *_OF_PEERS, *_AVERAGES, *_OF_ROWS, *_BESIDE))
"""In lower case."""
_WHOLE = ("UNBOUNDED", "UNBOUNDED")
_UP_TO_HERE = ("UNBOUNDED", "CURRENT ROW")


def with_windows(rows: Table, functions: Sequence[tuple[str, Expr]], constants: Constants) -> Table:
    """The rows with the functions' values beside them. Raises NotExact."""
    try:
        query = _Query(rows, constants)
        made = [(id, query.function(expr.tree)) for id, expr in functions]
        selected = ", ".join([*rows.schema.names, *(f"{column.sql} AS {id}" for id, column in made)])
        with database() as connection:
            connection.register("given", query.table)
            values = connection.sql(f"SELECT {selected} FROM given").to_arrow_table()
        schema = Schema((*rows.schema.columns, *(Column(id, column.type) for id, column in made)))
        return Table(values, schema)
    except (SqlglotError, duckdb_error(), pa.ArrowException) as error:  # such as values that do not fit
        raise NotExact(str(error)) from error


@dataclass(frozen=True)
class _Call:
    """In DuckDB's SQL, of that Spark type. In a call, ``{over}`` stands for its window."""

    sql: str
    type: Type


class _Query:
    """Over a table of the rows, and of what the functions' operands are."""

    def __init__(self, rows: Table, constants: Constants) -> None:
        self._rows = rows
        self._constants = constants
        self.table = rows.arrow

    def function(self, tree: exp.Expr) -> _Call:
        """``f(x) OVER (...)``. Raises NotExact, as all of these do."""
        if not isinstance(tree, exp.Window) or tree.args.get("alias") or not isinstance(tree.this, exp.Anonymous):
            raise NotExact
        name, arguments = str(tree.this.this).lower(), tree.this.expressions
        call = self._call(name, arguments)
        spec = tree.args.get("spec")
        frame = "" if spec is None else self._frame(name, spec)
        by = ", ".join(self._column(item, ordered=False)[0] for item in tree.args.get("partition_by") or ())
        order = tree.args.get("order")
        items = ", ".join(self._ordered(item) for item in order.expressions) if order else ""
        over = f"{f'PARTITION BY {by}' if by else ''} {f'ORDER BY {items}' if items else ''} {frame}"
        sql = call.sql.format(over=f"OVER ({over})")
        is_number = call.type in (INTEGER, LONG) or isinstance(call.type, Decimal)
        return _Call(f"CAST({sql} AS {duckdb_type(call.type)})" if is_number else sql, call.type)

    def _call(self, name: str, arguments: list[exp.Expr]) -> _Call:
        if name in _NUMBERS and not arguments:
            return _Call(f"{_NUMBERS[name]}() {{over}}", INTEGER)
        if name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
            return _Call("COUNT(*) {over}", LONG)
        if name in _BESIDE and len(arguments) in (1, 2):
            column, type = self._column(arguments[0], ordered=False)
            return _Call(f"{_BESIDE[name]}({column}{''.join(f', {_count(n)}' for n in arguments[1:])}) {{over}}", type)
        if name in _AVERAGES and len(arguments) == 1:
            return self._average(*self._column(arguments[0], ordered=False))
        function = _OF_PEERS.get(name) or _OF_ROWS.get(name)
        if function is None or len(arguments) != 1:
            raise NotExact
        column, type = self._column(arguments[0], ordered=name in ("min", "max"))
        if name == "count":
            type = LONG
        return _Call(f"{function}({column}) {{over}}", _sum_type(type) if name == "sum" else type)

    def _average(self, column: str, type: Type) -> _Call:
        """Of integers: Spark adds them up as doubles, which is exact up to 2^53."""
        if type not in INTEGERS:
            raise NotExact
        fits = f"SUM(abs({column}::HUGEINT)) {{over}} <= {1 << 53}"
        average = f"CAST(SUM({column}) {{over}} AS DOUBLE) / COUNT({column}) {{over}}"
        none = f"COUNT({column}) {{over}} = 0"
        return _Call(f"CASE WHEN {none} THEN NULL WHEN {fits} THEN {average} ELSE error('too large') END", DOUBLE)

    def _frame(self, name: str, spec: exp.Expr) -> str:
        ends = tuple(keyword(spec.args.get(side)) for side in ("start", "end"))
        kind = str(spec.args.get("kind") or "").upper()
        if kind == "RANGE" and (name not in (*_OF_PEERS, *_AVERAGES) or ends not in (_WHOLE, _UP_TO_HERE)):
            raise NotExact
        if kind not in ("RANGE", "ROWS") or name in _NUMBERS or name in _BESIDE:
            raise NotExact
        start, end = (_end(spec, side) for side in ("start", "end"))
        return f"{kind} BETWEEN {start} AND {end}"

    def _ordered(self, item: exp.Expr) -> str:
        if not isinstance(item, exp.Ordered):
            raise NotExact
        column, _ = self._column(item.this, ordered=True)
        direction = "DESC" if item.args.get("desc") else "ASC"
        return f"{column} {direction} NULLS {'FIRST' if item.args.get('nulls_first') else 'LAST'}"

    def _column(self, tree: exp.Expr, *, ordered: bool) -> tuple[str, Type]:
        """The operand as a column of the table, and its type."""
        expr = Expr.of(tree)
        if not expr.refs:
            raise NotExact
        value = evaluate(self._rows, expr, self._constants)
        schema = Schema((Column("x", value.type),))
        if not (is_ordered(schema) if ordered else is_plain(schema)):
            raise NotExact
        if expr.as_column:
            return expr.as_column, value.type
        name = f"dd_operand_{self.table.num_columns}"
        self.table = self.table.append_column(name, pa.chunked_array(value.data, arrow_type(value.type)))
        return name, value.type


def _sum_type(type: Type) -> Type:
    if type in INTEGERS:
        return LONG
    of = as_decimal(type)
    return Decimal(min(of.precision + 10, 38), of.scale)


def _count(tree: exp.Expr) -> int:
    """A number of rows, as it is written."""
    if not isinstance(tree, exp.Literal) or tree.is_string or not tree.this.isdigit():
        raise NotExact
    return int(tree.this)


def _end(spec: exp.Expr, side: str) -> str:
    value, direction = spec.args.get(side), keyword(spec.args.get(f"{side}_side"))
    if keyword(value) == "CURRENT ROW":
        return "CURRENT ROW"
    if direction in ("PRECEDING", "FOLLOWING"):
        if keyword(value) == "UNBOUNDED":
            return f"UNBOUNDED {direction}"
        if isinstance(value, exp.Expression):
            return f"{_count(value)} {direction}"
    raise NotExact
