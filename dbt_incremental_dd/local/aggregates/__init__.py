"""Aggregates of whole groups on the driver, by name: one family a file. Each gives Spark's value and type for all that
it does not leave to Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import LONG
from dbt_incremental_dd.local.aggregates import approximate, chosen, collected, moments, percentiles, sums, texts
from dbt_incremental_dd.local.aggregates.call import Call
from dbt_incremental_dd.local.aggregates.groups import Aggregates, Groups, only_where
from dbt_incremental_dd.local.expressions import Evaluation, truth
from dbt_incremental_dd.local.ordering import in_order
from dbt_incremental_dd.local.table import Table, group_numbers, normalized, require_comparable
from dbt_incremental_dd.local.value import Constants, NotExact, Value
from dbt_incremental_dd.local.vectors import row_numbers
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Order

_AGGREGATES: Aggregates = {
    **approximate.AGGREGATES,
    **chosen.AGGREGATES,
    **collected.AGGREGATES,
    **moments.AGGREGATES,
    **percentiles.AGGREGATES,
    **sums.AGGREGATES,
    **texts.AGGREGATES,
}
NAMES = frozenset((*_AGGREGATES, "percentile_cont"))
"""In lower case."""
_PLACE, _KEY = "dd_place", "dd_distinct"


def aggregated(rows: Table, keys: Sequence[str], outputs: Sequence[tuple[str, Expr]], constants: Constants) -> Table:
    """Each group's keys and aggregates, or constants. Without keys there is one group, even of no rows.

    Raises NotExact.
    """
    require_comparable(rows, keys)
    groups, values = Groups.of(rows, keys), Evaluation(rows, constants)
    calls = [(name, expr, _call_of(expr)) for name, expr in outputs]
    run = _Run(rows, groups, values, constants)
    try:
        found = [(name, run.constant(expr) if call is None else run.value(call)) for name, expr, call in calls]
    except pa.ArrowException as error:  # of types that Arrow does not compare
        raise NotExact(str(error)) from error
    if any(call is not None and call.is_distinct for _, _, call in calls) and run.is_ordered:
        raise NotExact("an order that DISTINCT changes")
    firsts = _firsts(groups) if keys else pa.array([], pa.int64())
    columns = {name: normalized(rows.arrow.select([name])).take(firsts)[name] for name in keys}
    columns |= {name: value.data for name, value in found}
    made = (Column(name, value.type) for name, value in found)
    return Table(pa.table(columns), Schema((*rows.schema.select(tuple(keys)), *made)))


def _call_of(expr: Expr) -> Call | None:
    """None for a constant."""
    return None if isinstance(expr.tree, exp.Literal) else Call.of(expr.tree)


def _firsts(groups: Groups) -> pa.Array:
    """The place of each group's first row; the groups are numbered as they come."""
    numbers = pa.table({"group": groups.numbers, _PLACE: row_numbers(len(groups.numbers))})
    return numbers.group_by(["group"], use_threads=False).aggregate([(_PLACE, "min")])[f"{_PLACE}_min"]


class _Run:
    """Of several aggregates over the same rows. ``is_ordered`` afterwards: whether one is another in another order."""

    def __init__(self, rows: Table, groups: Groups, values: Evaluation, constants: Constants) -> None:
        self._rows = rows
        self._groups = groups
        self._values = values
        self._constants = constants
        self.is_ordered = False

    def constant(self, expr: Expr) -> Value:
        """The same value for all groups."""
        found = self._constants.value_of(expr.sql)
        return Value(pa.chunked_array([pa.repeat(found.data, self._groups.count)]), found.type)

    def value(self, call: Call) -> Value:
        """An aggregate's value of each group."""
        if call.name == "percentile_cont":
            return self._percentile(call)
        aggregate, arguments = _AGGREGATES.get(call.name), call.arguments
        if call.ignores_nulls and call.name in chosen.IGNORING and len(arguments) == 1:
            arguments = (*arguments, exp.true())
        elif call.ignores_nulls or (call.order and call.name not in texts.AGGREGATES):
            raise NotExact(f"{call.name} with more than its arguments")
        if aggregate is None or not aggregate.least <= len(arguments) <= aggregate.most:
            raise NotExact(f"the aggregate {call.name}")
        groups, values = self._given(call, arguments)
        if call.is_distinct:
            if aggregate.is_ordered(values[0].type):
                raise NotExact("an order that DISTINCT changes")
            groups, values = _distinct(groups, values)
        elif values and aggregate.is_ordered(values[0].type):
            self.is_ordered = True
        if aggregate.drops_nulls:
            groups, values = _without_nulls(groups, values)
        return aggregate.apply(groups, self._constants, *values)

    def _percentile(self, call: Call) -> Value:
        if len(call.order) != 1 or len(call.arguments) != 1 or call.is_distinct or call.ignores_nulls:
            raise NotExact("another percentile")
        (ordered,) = call.order
        groups, [value, share] = self._given(call, (ordered.this, call.arguments[0]))
        groups, [value] = _without_nulls(groups, [value])
        return percentiles.percentile(groups, self._constants, value, share, descends=bool(ordered.args.get("desc")))

    def _given(self, call: Call, arguments: Sequence[exp.Expr]) -> tuple[Groups, list[Value]]:
        """The rows that count, in their order, and the arguments' values of these."""
        groups, values = self._groups, [self._value(Expr.of(argument)) for argument in arguments]
        if call.filter is not None:
            groups, values = only_where(
                groups, values, pc.fill_null(truth(self._rows, call.filter, self._constants), False)
            )
        if call.order and call.name in texts.AGGREGATES:
            if call.filter is not None or call.is_distinct:
                raise NotExact("a part of the rows in an order")
            places = self._sorted(call.order)
            groups = groups.taken(places.to_numpy())
            values = [v if isinstance(v.data, pa.Scalar) else Value(v.data.take(places), v.type) for v in values]
        return groups, values

    def _value(self, expr: Expr) -> Value:
        return self._values.of(expr) if expr.refs else self._constants.value_of(expr.sql)

    def _sorted(self, items: Sequence[exp.Ordered]) -> pa.Array:
        order = [
            Order(Expr.of(i.this), descending=bool(i.args.get("desc")), nulls_first=bool(i.args.get("nulls_first")))
            for i in items
        ]
        numbered = self._rows.with_column(_PLACE, row_numbers(self._rows.num_rows), LONG)
        return in_order(numbered, order).arrow[_PLACE].combine_chunks()


def _without_nulls(groups: Groups, values: list[Value]) -> tuple[Groups, list[Value]]:
    """Without the rows whose first value is NULL."""
    if isinstance(values[0].data, pa.Scalar):
        raise NotExact("an aggregate of a constant")
    return only_where(groups, values, pc.is_valid(values[0].data))


def _distinct(groups: Groups, values: list[Value]) -> tuple[Groups, list[Value]]:
    """The first of equal rows of each group."""
    if any(isinstance(value.data, pa.Scalar) for value in values):
        raise NotExact("an aggregate of a constant")
    named = {f"{_KEY}_{number}": value for number, value in enumerate(values)}
    schema = Schema(tuple(Column(name, value.type) for name, value in named.items()))
    rows = Table(pa.table({name: value.data for name, value in named.items()}), schema)
    require_comparable(rows, schema.names)
    table = rows.arrow.append_column("group", pa.array(groups.numbers))
    numbers = group_numbers(table, ["group", *schema.names])
    firsts = _firsts(Groups(numbers.to_numpy(), 0))
    return groups.taken(firsts.to_numpy()), [Value(value.data.take(firsts), value.type) for value in values]
