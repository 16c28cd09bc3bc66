"""Grouped aggregation by accumulators: what an aggregate needs to know of a group, kept as sums that a delta changes by
adding. ``count``, ``sum``, ``avg`` and the boolean ones of exact types are functions of such sums; ``min`` and ``max``
are kept as values, compared with the delta, and recomputed from the input only where the extreme itself is retracted.

Sums of floats do not cancel exactly under retraction, so groups with one are recomputed (``groups.RecomputeGroups``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.core.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOATS,
    INTEGERS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    Type,
)
from dbt_incremental_dd.differential.decimals import decimal_average, decimal_sum, sums_exactly
from dbt_incremental_dd.differential.groups import RecomputeGroups
from dbt_incremental_dd.differential.state import Names, OutputState, State
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Aggregate, Reduce
from dbt_incremental_dd.logical.sql_types import sql_type

_ORDERED = (*INTEGERS, *FLOATS, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ, BOOLEAN, BINARY)
_OF_LONGS = Decimal(19, 0)
_QUOTIENT = " AS DOUBLE) / CAST("


@dataclass(frozen=True)
class Accumulator:
    """A sum over a group: ``value`` is the SQL of what a row of a delta (columns and ``dd_diff``) adds to it.

    ``dtype`` is BIGINT or DECIMAL(37,s): two of the latter add up without losing a digit.
    """

    name: str
    value: str
    dtype: str = "BIGINT"

    @property
    def delta(self) -> str:
        """Its SQL aggregate over a delta's rows; NULL where no row adds to it."""
        return f"sum({self.value})"


@dataclass(frozen=True)
class Extreme:
    """A minimum or maximum: ``value`` is its operand, NULL for rows that do not count; ``dtype`` its SQL type."""

    id: Id
    maximum: bool
    value: Expr
    dtype: str


@dataclass(frozen=True)
class Accumulate(Node):
    """``outputs`` are SQL over the accumulators' names; extremes come from ``values``, the stored ones.

    ``threshold``: instead of one row for each group that has rows, each group as often as it has rows.
    """

    input: Node
    keys: tuple[Id, ...]
    accumulators: tuple[Accumulator, ...]
    outputs: tuple[tuple[Id, str], ...]
    extremes: tuple[Extreme, ...]
    global_row: bool
    threshold: bool
    sums: State
    values: State | None

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.keys + self.order_of_outputs

    @property
    def order_of_outputs(self) -> tuple[Id, ...]:
        """Aggregates' ids in the order of the logical plan."""
        return tuple(id for id, _ in self.outputs)

    @property
    def is_rounded(self) -> bool:
        """Whether an output is an average of integers: Spark adds doubles up one by one, and may round otherwise."""
        return any(_QUOTIENT in sql for _, sql in self.outputs)

    @property
    def extreme_types(self) -> tuple[tuple[Id, str], ...]:
        """The extremes with their SQL types."""
        return tuple((e.id, e.dtype) for e in self.extremes)


def plan_reduce(
    node: Reduce,
    source: Node,
    input_types: tuple[tuple[Id, str], ...],
    arg_types: Callable[[Expr], Type],
    names: Names,
    output: OutputState | None,
) -> Node:
    """Accumulators where every aggregate allows it, else groups recomputed."""
    reason = next((r for a in node.aggregates if (r := _why_not(a, arg_types))), None)
    if reason is not None:
        old = output or State(names.new("groups"), node.columns, node.keys)
        return RecomputeGroups(
            source,
            node.keys,
            node.aggregates,
            global_row=node.global_row,
            reason=reason,
            input_types=input_types,
            old=old,
        )
    parts = _Parts()
    outputs = tuple((a.id, _accumulate(a, arg_types, parts)) for a in node.aggregates)
    return accumulate(source, node.keys, parts, outputs, names, global_row=node.global_row)


def plan_distinct(source: Node, names: Names) -> Accumulate:
    """DISTINCT: groups by all columns, without aggregates."""
    return accumulate(source, source.columns, _Parts(), (), names)


def plan_threshold(source: Node, names: Names) -> Accumulate:
    """Threshold: groups by all columns, each as often as it has rows, if positive."""
    return accumulate(source, source.columns, _Parts(), (), names, threshold=True)


class _Parts:
    """Accumulators and extremes of one operator, each made once."""

    def __init__(self) -> None:
        self.sums: dict[str, Accumulator] = {}
        self.extremes: list[Extreme] = []

    def sum(self, value: str, dtype: str = "BIGINT") -> str:
        """The name of the accumulator with that definition."""
        return self.sums.setdefault(value, Accumulator(f"dd_a{len(self.sums)}", value, dtype)).name


def accumulate(
    source: Node,
    keys: tuple[Id, ...],
    parts: _Parts,
    outputs: tuple[tuple[Id, str], ...],
    names: Names,
    *,
    global_row: bool = False,
    threshold: bool = False,
) -> Accumulate:
    """The operator with its states named."""
    accumulators = tuple(parts.sums.values())
    name = names.new("reduce")
    sums = State(f"{name}.sums", keys, keys, (DIFF, *(a.name for a in accumulators)))
    extremes = tuple(parts.extremes)
    values = State(f"{name}.values", (*keys, *(e.id for e in extremes)), keys) if extremes else None
    return Accumulate(
        source,
        keys,
        accumulators,
        outputs=outputs,
        extremes=extremes,
        global_row=global_row,
        threshold=threshold,
        sums=sums,
        values=values,
    )


def _why_not(aggregate: Aggregate, arg_types: Callable[[Expr], Type]) -> str | None:
    """Why an aggregate cannot be accumulated; None where it can."""
    call = aggregate.sql.sql
    kind = _KINDS.get(aggregate.function)
    if kind is None or not aggregate.plain:
        return f"{call}: groups that change are recomputed"
    if aggregate.distinct and kind != "extreme":
        return f"{call}: distinct values are recomputed for groups that change"
    if kind in ("sum", "avg", "extreme", "all", "any", "count_if"):
        if len(aggregate.args) != 1:
            return f"{call}: groups that change are recomputed"
        dtype = arg_types(aggregate.args[0])
        if kind in ("sum", "avg") and not _exact(dtype, kind):
            return f"{call}: sums of {dtype} do not cancel exactly, groups that change are recomputed"
        if kind in ("all", "any", "count_if") and dtype != BOOLEAN:
            return f"{call}: groups that change are recomputed"
        if kind == "extreme" and not (dtype in _ORDERED or isinstance(dtype, Decimal)):
            return f"{call}: extremes of {dtype} are recomputed for groups that change"
    return None


_KINDS = {
    "count": "count",
    "sum": "sum",
    "avg": "avg",
    "mean": "avg",
    "min": "extreme",
    "max": "extreme",
    "bool_and": "all",
    "every": "all",
    "bool_or": "any",
    "some": "any",
    "any": "any",
    "count_if": "count_if",
}


def _exact(dtype: Type, kind: str) -> bool:
    """Whether sums of the type are exact, and the average a function of sum and count to the last digit."""
    if not isinstance(dtype, Decimal):
        return dtype in INTEGERS
    return dtype.scale >= 0 and (dtype.precision <= 18 if kind == "avg" else sums_exactly(dtype))


def _accumulate(aggregate: Aggregate, arg_types: Callable[[Expr], Type], parts: _Parts) -> str:
    """The aggregate as SQL over accumulators, which it adds to ``parts``."""
    kind = _KINDS[aggregate.function]
    if kind == "count":
        return _count(aggregate, parts)
    value = aggregate.args[0].sql
    if aggregate.filter is not None:
        value = f"CASE WHEN {aggregate.filter.sql} THEN {value} END"
    if kind == "extreme":
        dtype = sql_type(arg_types(aggregate.args[0]))
        parts.extremes.append(Extreme(aggregate.id, aggregate.function == "max", Expr(value), dtype))
        return aggregate.id
    if kind == "count_if":
        return parts.sum(f"CASE WHEN {value} THEN {DIFF} ELSE 0L END")
    if kind in ("all", "any"):
        return _boolean(kind, value, parts)
    return _sum(kind, value, arg_types(aggregate.args[0]), parts)


def _count(aggregate: Aggregate, parts: _Parts) -> str:
    conditions = [f"({arg.sql}) IS NOT NULL" for arg in aggregate.args]
    if aggregate.filter is not None:
        conditions.append(f"({aggregate.filter.sql})")
    if not conditions:
        return DIFF
    return parts.sum(f"CASE WHEN {' AND '.join(conditions)} THEN {DIFF} ELSE 0L END")


def _boolean(kind: str, value: str, parts: _Parts) -> str:
    """NULL over no values; else whether there is no false one (all), or some true one (any)."""
    true = parts.sum(f"CASE WHEN ({value}) THEN {DIFF} ELSE 0L END")
    false = parts.sum(f"CASE WHEN NOT ({value}) THEN {DIFF} ELSE 0L END")
    test = f"{false} = 0" if kind == "all" else f"{true} > 0"
    return f"CASE WHEN {true} + {false} > 0 THEN {test} END"


def _sum(kind: str, value: str, dtype: Type, parts: _Parts) -> str:
    """Sum and average over accumulated sum and count, in the result types of Spark's own aggregates."""
    count = parts.sum(f"CASE WHEN ({value}) IS NOT NULL THEN {DIFF} ELSE 0L END")
    if not isinstance(dtype, Decimal) and kind == "sum":
        total = parts.sum(f"CAST({value} AS BIGINT) * {DIFF}")
        return f"CASE WHEN {count} > 0 THEN {total} END"
    total = decimal_sum(value, dtype if isinstance(dtype, Decimal) else _OF_LONGS, parts.sum)
    if not isinstance(dtype, Decimal):
        return f"CASE WHEN {count} > 0 THEN CAST({total}{_QUOTIENT}{count} AS DOUBLE) END"
    result = f"CAST({total} AS DECIMAL({min(dtype.precision + 10, 38)},{dtype.scale}))"
    if kind == "avg":
        result = decimal_average(result, count, dtype)
    return f"CASE WHEN {count} > 0 THEN {result} END"
