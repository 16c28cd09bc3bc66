"""Window functions on the driver, by DuckDB: those that mean the same there as in Spark, over columns that both order
and add up alike. Anything else is Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import BINARY, DOUBLE, FLOATS, INTEGER, INTEGERS, LONG, NESTED, Decimal, Type
from dbt_incremental_dd.duck.connections import database
from dbt_incremental_dd.duck.connections import error as duckdb_error
from dbt_incremental_dd.duck.sql import duckdb_type
from dbt_incremental_dd.local.aggregates.sums import decimal_averages, sum_type
from dbt_incremental_dd.local.expressions import evaluate
from dbt_incremental_dd.local.floats import ranks
from dbt_incremental_dd.local.frame_sums import frame_sums
from dbt_incremental_dd.local.frames import count_of, frame, has_offset, kind_of, position, require_ends
from dbt_incremental_dd.local.nested import encoded, has_order
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import Constants, NotExact, Value
from dbt_incremental_dd.local.vectors import Array, flat, row_numbers
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.trace.arrow import arrow_type

_NUMBERS = {"row_number": "ROW_NUMBER", "rank": "RANK", "dense_rank": "DENSE_RANK"}
_SHARES = {"percent_rank": "PERCENT_RANK", "cume_dist": "CUME_DIST"}
_OF_PEERS = {"sum": "SUM", "count": "COUNT", "min": "MIN", "max": "MAX"}
_AVERAGES = ("avg", "mean")
_OF_ROWS = {"first": "FIRST_VALUE", "first_value": "FIRST_VALUE", "last": "LAST_VALUE", "last_value": "LAST_VALUE"}
_BESIDE = {"lag": "LAG", "lead": "LEAD"}
_FRAMELESS = frozenset((*_NUMBERS, *_SHARES, *_BESIDE, "ntile"))
NAMES = frozenset((*_FRAMELESS, *_OF_PEERS, *_AVERAGES, *_OF_ROWS, "nth_value"))
"""In lower case."""


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
        finished = {id: call.finish(values[id]) for id, call in made if call.finish is not None}
        columns = {name: finished.get(name, values[name]) for name in values.column_names}
        return Table(pa.table(columns), schema)
    except (SqlglotError, duckdb_error(), pa.ArrowException) as error:  # such as values that do not fit
        raise NotExact(str(error)) from error


@dataclass(frozen=True)
class _Call:
    """In DuckDB's SQL, of that Spark type. In a call, ``{over}`` stands for its window. ``finish`` makes the values of
    what DuckDB gives."""

    sql: str
    type: Type
    finish: Callable[[pa.ChunkedArray], pa.ChunkedArray] | None = None
    sums: _Sums | None = None
    """In place of the SQL, what is added up in the order of the rows."""


@dataclass(frozen=True)
class _Sums:
    values: Value
    average: bool


_Item = tuple[str, Type, str]
"""Of an ORDER BY: a column, its type, and ``ASC`` or ``DESC`` with the place of NULLs."""


class _Query:
    """Over a table of the rows, and of what the functions' operands are."""

    def __init__(self, rows: Table, constants: Constants) -> None:
        self._rows = rows
        self._constants = constants
        self.table = rows.arrow
        self._nested: dict[str, pa.Array] = {}
        """For columns of numbers of nested values, what each number stands for."""

    def function(self, tree: exp.Expr) -> _Call:
        """``f(x) OVER (...)``. Raises NotExact, as all of these do."""
        if not isinstance(tree, exp.Window) or tree.args.get("alias"):
            raise NotExact
        called, ignores_nulls = _called(tree.this)
        name = str(called.this).lower()
        call = self._call(name, called.expressions, " IGNORE NULLS" if ignores_nulls else "")
        by = ", ".join(self._compared(item, ordered=False)[0] for item in tree.args.get("partition_by") or ())
        order = tree.args.get("order")
        items = [self._ordered(item) for item in order.expressions] if order else []
        spec, framed = tree.args.get("spec"), ""
        if spec is not None:
            items, framed = self._framed(name, spec, items)
        if call.sums is not None:
            return self._summed(call.sums, by, items, framed)
        ordered = ", ".join(f"{column} {direction}" for column, _, direction in items)
        over = f"{f'PARTITION BY {by}' if by else ''} {f'ORDER BY {ordered}' if items else ''} {framed}"
        sql = call.sql.format(over=f"OVER ({over})")
        if call.finish is not None or not (call.type in (INTEGER, LONG) or isinstance(call.type, Decimal)):
            return replace(call, sql=sql)
        return replace(call, sql=f"CAST({sql} AS {duckdb_type(call.type)})")

    def _call(self, name: str, arguments: list[exp.Expr], nulls: str) -> _Call:
        """``nulls``: ``IGNORE NULLS``, or nothing."""
        if name in _BESIDE and len(arguments) in (1, 2, 3):
            return self._beside(name, arguments, nulls)
        if name == "nth_value" and len(arguments) == 2:
            column, type = self._column(arguments[0])
            return _Call(f"NTH_VALUE({column}, {count_of(arguments[1])}{nulls}) {{over}}", type, self._finish(column))
        if name in _OF_ROWS and len(arguments) == 1:
            column, type = self._column(arguments[0])
            return _Call(f"{_OF_ROWS[name]}({column}{nulls}) {{over}}", type, self._finish(column))
        if nulls:
            raise NotExact
        if name in _NUMBERS and not arguments:
            return _Call(f"{_NUMBERS[name]}() {{over}}", INTEGER)
        if name in _SHARES and not arguments:
            return _Call(f"{_SHARES[name]}() {{over}}", DOUBLE)
        if name == "ntile" and len(arguments) == 1 and count_of(arguments[0]):
            return _Call(f"NTILE({count_of(arguments[0])}) {{over}}", INTEGER)
        if name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
            return _Call("COUNT(*) {over}", LONG)
        if name not in (*_OF_PEERS, *_AVERAGES) or len(arguments) != 1:
            raise NotExact
        column, type = self._column(arguments[0])
        if type in FLOATS and name in ("sum", *_AVERAGES):
            return _Call("", DOUBLE, sums=_Sums(Value(self.table[column], type), name in _AVERAGES))
        if name in _AVERAGES:
            return self._average(column, type)
        if name in ("min", "max"):
            if type == BINARY or (column in self._nested and not has_order(type)):
                raise NotExact
            return _Call(f"{_OF_PEERS[name]}({column}) {{over}}", type, self._finish(column))
        return _Call(f"{_OF_PEERS[name]}({column}) {{over}}", LONG if name == "count" else sum_type(type))

    def _beside(self, name: str, arguments: list[exp.Expr], nulls: str) -> _Call:
        """A row's value so many rows away; the third argument is that of a row that is not there."""
        column, type = self._column(arguments[0])
        if column in self._nested and len(arguments) > 2:
            raise NotExact
        values = [column, *(str(count_of(count)) for count in arguments[1:2])]
        for other in arguments[2:]:
            default = evaluate(self._rows, Expr.of(other), self._constants)
            widened = default.type in INTEGERS and type in INTEGERS[INTEGERS.index(default.type) :]
            if default.type != type and not widened:
                raise NotExact
            values.append(f"{self._appended(default)}::{duckdb_type(type)}")
        return _Call(f"{_BESIDE[name]}({', '.join(values)}{nulls}) {{over}}", type, self._finish(column))

    def _summed(self, sums: _Sums, by: str, items: list[_Item], framed: str) -> _Call:
        """The ends of each row's frame, as places in the order of all partitions. A frame of rows is one of places, so
        that rows which are equal there come in one order."""
        place, order = f"dd_place_{self.table.num_columns}", self._in_order(by, items)
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        self.table = self.table.append_column(place, pa.array(places))
        if framed.startswith("ROWS"):
            items = [(place, LONG, "ASC")]
        ordered = ", ".join(f"{column} {direction}" for column, _, direction in items)
        over = f"OVER ({f'PARTITION BY {by}' if by else ''} {f'ORDER BY {ordered}' if items else ''} {framed})"
        values = sums.values.data.take(pa.array(order))

        def finish(ends: pa.ChunkedArray) -> pa.ChunkedArray:
            first, last = (
                pc.fill_null(pc.struct_field(ends, end), -1).to_numpy(zero_copy_only=False) for end in ("a", "z")
            )
            return frame_sums(values, first, last, average=sums.average).data

        return _Call(f"{{'a': MIN({place}) {over}, 'z': MAX({place}) {over}}}", DOUBLE, finish)

    def _in_order(self, by: str, items: list[_Item]) -> Array:
        """The rows' numbers in the order of partitions, and within each in the window's."""
        row = f"dd_row_{self.table.num_columns}"
        order = [*([by] if by else []), *(f"{column} {direction}" for column, _, direction in items), row]
        with database() as connection:
            connection.register("given", self.table.append_column(row, row_numbers(self.table.num_rows)))
            found = connection.sql(f"SELECT {row} FROM given ORDER BY {', '.join(order)}").to_arrow_table()
        return np.asarray(found[row])

    def _average(self, column: str, type: Type) -> _Call:
        """Of integers: Spark adds them up as doubles, which is exact up to 2^53."""
        if isinstance(type, Decimal):
            return self._decimal_average(column, type)
        if type not in INTEGERS:
            raise NotExact
        fits = f"SUM(abs({column}::HUGEINT)) {{over}} <= {1 << 53}"
        average = f"CAST(SUM({column}) {{over}} AS DOUBLE) / COUNT({column}) {{over}}"
        none = f"COUNT({column}) {{over}} = 0"
        return _Call(f"CASE WHEN {none} THEN NULL WHEN {fits} THEN {average} ELSE error('too large') END", DOUBLE)

    def _decimal_average(self, column: str, type: Decimal) -> _Call:
        total, result = sum_type(type), Decimal(type.precision + 4, type.scale + 4)

        def finish(found: pa.ChunkedArray) -> pa.ChunkedArray:
            totals = pc.struct_field(found, "total").cast(arrow_type(total))
            return decimal_averages(totals, pc.struct_field(found, "count"), type, self._constants).data

        sql = f"{{{{'total': SUM({column}) {{over}}, 'count': COUNT({column}) {{over}}}}}}"
        return _Call(sql, result, finish)

    def _framed(self, name: str, spec: exp.Expr, items: list[_Item]) -> tuple[list[_Item], str]:
        """The order, as numbers where the frame is a range of them, and the frame."""
        if name in _FRAMELESS or (kind_of(spec) == "RANGE" and name not in (*_OF_PEERS, *_AVERAGES)):
            raise NotExact
        if kind_of(spec) != "RANGE" or not has_offset(spec):
            return items, frame(spec, None)
        if len(items) != 1:
            raise NotExact
        [(column, type, direction)] = items
        require_ends(spec, Value(self.table[column], type), descends=direction.startswith("DESC"))
        return [(position(column, type), type, direction)], frame(spec, type)

    def _ordered(self, item: exp.Expr) -> _Item:
        if not isinstance(item, exp.Ordered):
            raise NotExact
        column, type = self._compared(item.this, ordered=True)
        direction = "DESC" if item.args.get("desc") else "ASC"
        return column, type, f"{direction} NULLS {'FIRST' if item.args.get('nulls_first') else 'LAST'}"

    def _compared(self, tree: exp.Expr, *, ordered: bool) -> tuple[str, Type]:
        """A column that is equal, and ordered, as the expression's values are, and their type."""
        column, type = self._column(tree)
        if ordered and (type == BINARY or (column in self._nested and not has_order(type))):
            raise NotExact
        if type not in FLOATS:
            return column, type
        return self._appended(Value(ranks(self.table[column]), LONG)), type

    def _column(self, tree: exp.Expr) -> tuple[str, Type]:
        """The operand as a column of the table, nested values as numbers, and its type."""
        expr = Expr.of(tree)
        if not expr.refs:
            raise NotExact
        value = evaluate(self._rows, expr, self._constants)
        if not isinstance(value.type, NESTED):
            return expr.as_column or self._appended(value), value.type
        found, known = encoded(pa.table({"v": value.data}), ["v"])
        column = self._appended(Value(found["v"], LONG))
        self._nested[column] = known["v"]
        return column, value.type

    def _finish(self, column: str) -> Callable[[pa.ChunkedArray], pa.ChunkedArray] | None:
        """Makes nested values of what a function of their numbers is; None for a column of others."""
        known = self._nested.get(column)
        return None if known is None else lambda found: pa.chunked_array([known.take(flat(found.cast(pa.int64())))])

    def _appended(self, value: Value) -> str:
        """Its column in the table from now on."""
        name = f"dd_operand_{self.table.num_columns}"
        self.table = self.table.append_column(name, pa.chunked_array(value.data, arrow_type(value.type)))
        return name


def _called(tree: exp.Expr) -> tuple[exp.Anonymous, bool]:
    """The call without what is written about NULLs, and whether it leaves them out: ``IGNORE NULLS``, or an argument
    of true."""
    ignores_nulls = isinstance(tree, exp.IgnoreNulls)
    call = tree.this if isinstance(tree, exp.IgnoreNulls | exp.RespectNulls) else tree
    if not isinstance(call, exp.Anonymous):
        raise NotExact
    *others, last = call.expressions or [None]
    if str(call.this).lower() in _OF_ROWS and len(others) == 1 and isinstance(last, exp.Boolean):
        return exp.Anonymous(this=call.this, expressions=others), ignores_nulls or bool(last.this)
    return call, ignores_nulls
