"""Frames of windows in DuckDB's SQL. With offsets, a RANGE is one of numbers: integers, days, or microseconds."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from dbt_incremental_dd.core.types import DATE, INTEGERS, TIMESTAMP, TIMESTAMP_NTZ, Type
from dbt_incremental_dd.local.calendar import MICROS_OF_DAY
from dbt_incremental_dd.local.intervals import interval_of, unit_of
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.logical.expr import Expr, keyword
from dbt_incremental_dd.trace.arrow import arrow_type

_SIDES = ("start", "end")


def frame(spec: exp.Expr, ordered_by: Type | None) -> str:
    """``ROWS BETWEEN ... AND ...``, or ``RANGE``. ``ordered_by``: the type of the column that ``position`` counts.
    Raises NotExact for others."""
    kind = kind_of(spec)
    if kind not in ("RANGE", "ROWS"):
        raise NotExact
    if (
        kind == "RANGE" and len({unit_of(Expr.of(tree).sql) for tree in _offsets(spec).values()}) > 1
    ):  # Spark refuses it
        raise NotExact
    start, end = (_end(spec, side, lambda tree: _offset(tree, kind, ordered_by)) for side in _SIDES)
    return f"{kind} BETWEEN {start} AND {end}"


def kind_of(spec: exp.Expr) -> str:
    """``ROWS`` or ``RANGE``, mostly."""
    return str(spec.args.get("kind") or "").upper()


def has_offset(spec: exp.Expr) -> bool:
    """Whether one of its ends is so far from the current row."""
    return bool(_offsets(spec))


def position(column: str, type: Type) -> str:
    """A column's values as the numbers that a RANGE is of. Raises NotExact for types whose offsets are no numbers."""
    if type in INTEGERS:
        return f"{column}::HUGEINT"
    if type == DATE:
        return f"({column} - DATE '1970-01-01')::HUGEINT"
    if type in (TIMESTAMP, TIMESTAMP_NTZ):
        return f"epoch_us({column})::HUGEINT"
    raise NotExact


def require_ends(spec: exp.Expr, ordered_by: Value, *, descends: bool) -> None:
    """Raises NotExact where a value's range ends beyond its type: there Spark's numbers wrap."""
    kind = arrow_type(ordered_by.type)
    assert kind is not None
    least, most = -1 << (kind.bit_width - 1), (1 << (kind.bit_width - 1)) - 1
    counted = pc.cast(ordered_by.data, pa.int32() if ordered_by.type == DATE else pa.int64())
    bounds = [bound for bound in pc.min_max(counted).as_py().values() if bound is not None]
    for side, tree in _offsets(spec).items():
        goes_down = (keyword(spec.args.get(f"{side}_side")) == "PRECEDING") is not descends
        shift = _offset(tree, "RANGE", ordered_by.type) * (-1 if goes_down else 1)
        if any(not least <= bound + shift <= most for bound in bounds):
            raise NotExact


def count_of(tree: exp.Expr) -> int:
    """A number of rows, as it is written."""
    if not isinstance(tree, exp.Literal) or tree.is_string or not tree.this.isdigit():
        raise NotExact
    return int(tree.this)


def _offsets(spec: exp.Expr) -> dict[str, exp.Expr]:
    """The frame's ends that are so far away, by their side."""
    return {side: tree for side in _SIDES if isinstance(tree := spec.args.get(side), exp.Expression)}


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
