"""Frames of windows in DuckDB's SQL. With offsets, a RANGE is one of numbers: integers, days, or microseconds."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dbt_incremental_dd.core.types import DATE, INTEGERS, TIMESTAMP, TIMESTAMP_NTZ, Type
from dbt_incremental_dd.local.calendar import MICROS_OF_DAY
from dbt_incremental_dd.local.intervals import interval_of, unit_of
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.logical.expr import Expr, keyword

_SIDES = ("start", "end")


def frame(spec: exp.Expr, ordered_by: Type | None) -> str:
    """``ROWS BETWEEN ... AND ...``, or ``RANGE``. ``ordered_by``: the type of the column that ``position`` counts.
    Raises NotExact for others."""
    kind = kind_of(spec)
    if kind not in ("RANGE", "ROWS"):
        raise NotExact
    offsets = [Expr.of(tree).sql for side in _SIDES if isinstance(tree := spec.args.get(side), exp.Expression)]
    if kind == "RANGE" and len(set(map(unit_of, offsets))) > 1:  # Spark refuses it
        raise NotExact
    start, end = (_end(spec, side, lambda tree: _offset(tree, kind, ordered_by)) for side in _SIDES)
    return f"{kind} BETWEEN {start} AND {end}"


def kind_of(spec: exp.Expr) -> str:
    """``ROWS`` or ``RANGE``, mostly."""
    return str(spec.args.get("kind") or "").upper()


def has_offset(spec: exp.Expr) -> bool:
    """Whether one of its ends is so far from the current row."""
    return any(isinstance(spec.args.get(side), exp.Expression) for side in _SIDES)


def position(column: str, type: Type) -> str:
    """A column's values as the numbers that a RANGE is of. Raises NotExact for types whose offsets are no numbers."""
    if type in INTEGERS:
        return f"{column}::HUGEINT"
    if type == DATE:
        return f"({column} - DATE '1970-01-01')::HUGEINT"
    if type in (TIMESTAMP, TIMESTAMP_NTZ):
        return f"epoch_us({column})::HUGEINT"
    raise NotExact


def count_of(tree: exp.Expr) -> int:
    """A number of rows, as it is written."""
    if not isinstance(tree, exp.Literal) or tree.is_string or not tree.this.isdigit():
        raise NotExact
    return int(tree.this)


def _offset(tree: exp.Expr, kind: str, ordered_by: Type | None) -> int:
    if isinstance(tree, exp.Literal) and (kind == "ROWS" or ordered_by in (*INTEGERS, DATE)):
        return count_of(tree)
    if kind == "ROWS":
        raise NotExact
    interval = interval_of(Expr.of(tree).sql)
    # A day of a TIMESTAMP is as long as it is where the session is.
    fits = not interval.micros if ordered_by == DATE else not interval.days or ordered_by == TIMESTAMP_NTZ
    if interval.months or ordered_by not in (DATE, TIMESTAMP, TIMESTAMP_NTZ) or not fits:
        raise NotExact
    return interval.days if ordered_by == DATE else interval.days * MICROS_OF_DAY + interval.micros


def _end(spec: exp.Expr, side: str, offset: Callable[[exp.Expr], int]) -> str:
    value, direction = spec.args.get(side), keyword(spec.args.get(f"{side}_side"))
    if keyword(value) == "CURRENT ROW":
        return "CURRENT ROW"
    if direction in ("PRECEDING", "FOLLOWING"):
        if keyword(value) == "UNBOUNDED":
            return f"UNBOUNDED {direction}"
        if isinstance(value, exp.Expression):
            return f"{offset(value)} {direction}"
    raise NotExact
