"""``sequence`` on the driver: of integers, and of days by whole days or months."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from dbt_incremental_dd.core.types import DATE, INTEGERS, LONG, Type
from dbt_incremental_dd.local.calendar import add_months
from dbt_incremental_dd.local.coercion import common_type, widened
from dbt_incremental_dd.local.expressions import evaluate
from dbt_incremental_dd.local.generators.generator import MANY
from dbt_incremental_dd.local.intervals import Interval, interval_of
from dbt_incremental_dd.local.lists import Lists
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import Constants, NotExact
from dbt_incremental_dd.local.vectors import MOST_ROWS
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.literals import Verbatim
from dbt_incremental_dd.trace.arrow import arrow_type


def sequences(rows: Table, arguments: Sequence[exp.Expr], constants: Constants) -> tuple[Lists, tuple[Type, ...]]:
    """Each row's sequence, and the type of its elements. Raises NotExact."""
    if not 2 <= len(arguments) <= 3:
        raise NotExact
    found = [evaluate(rows, Expr.of(end), constants) for end in arguments[:2]]
    if {value.type for value in found} == {DATE}:
        days = [pc.cast(value.data, pa.int32()).to_pylist() for value in found]
        step = _step(arguments[2]) if len(arguments) == 3 else None
        if step is not None and step.months:
            return _made([_by_months(start, stop, step.months) for start, stop in zip(*days, strict=True)], DATE)
        steps = [] if step is None else [[step.days] * rows.num_rows]
        return _made([_sequence(*row) for row in zip(*days, *steps, strict=True)], DATE)
    found += [evaluate(rows, Expr.of(step), constants) for step in arguments[2:]]
    type = common_type([value.type for value in found])
    if type not in INTEGERS:
        raise NotExact
    columns = [widened(value, LONG).data.to_pylist() for value in found]
    return _made([_sequence(*row) for row in zip(*columns, strict=True)], type)


def _made(sequences: Sequence[Sequence[int] | None], type: Type) -> tuple[Lists, tuple[Type, ...]]:
    """Days are numbers since 1970."""
    lengths = np.array([len(one or ()) for one in sequences], np.int64)
    if lengths.sum() > MOST_ROWS:
        raise NotExact(MANY)
    kind = pa.int32() if type == DATE else arrow_type(type)
    elements = pa.array([value for one in sequences for value in one or ()], kind).cast(arrow_type(type))
    nulls = np.array([one is None for one in sequences], bool)
    return Lists(lengths, nulls, (elements,)), (type,)


def _step(step: exp.Expr) -> Interval:
    """A step of whole days or of months, as it is written."""
    if not isinstance(step, Verbatim) or not step.is_interval:
        raise NotExact
    found = interval_of(str(step.this))
    if found.micros or (found.months and found.days):
        raise NotExact
    return found


def _by_months(start: int | None, stop: int | None, months: int) -> Sequence[int] | None:
    """So many months after the first day, each counted from there, up to the last."""
    if start is None or stop is None:
        return None
    if (stop - start) * months < 0:
        raise NotExact("a sequence that does not end")
    count = abs(stop - start) // (28 * abs(months)) + 1
    if count > MOST_ROWS:
        raise NotExact(MANY)
    first = np.full(count, start).astype("M8[D]")
    found = add_months(first, months * np.arange(count)).astype(np.int64)
    kept: list[int] = found[found <= stop if months > 0 else found >= stop].tolist()
    return kept


def _sequence(start: int | None, stop: int | None, *steps: int | None) -> range | None:
    """From one end to the other, both included; without a step, towards it."""
    if start is None or stop is None or None in steps:
        return None
    (step,) = [step for step in steps if step is not None] or [1 if start <= stop else -1]
    if not step or (stop - start) * step < 0:
        raise NotExact("a sequence that does not end")
    if (stop - start) // step >= MOST_ROWS:  # perhaps more than Python counts
        raise NotExact(MANY)
    return range(start, stop + (1 if step > 0 else -1), step)
