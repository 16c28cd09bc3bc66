"""Generators on the driver: ``explode`` and ``posexplode`` of a sequence, and of a text that is split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from dbt_incremental_dd.core.types import DATE, INTEGER, INTEGERS, LONG, STRING, Type
from dbt_incremental_dd.local.calendar import add_months
from dbt_incremental_dd.local.coercion import common_type, widened
from dbt_incremental_dd.local.expressions import evaluate
from dbt_incremental_dd.local.intervals import Interval, interval_of
from dbt_incremental_dd.local.parts import is_split, parts
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import Constants, NotExact
from dbt_incremental_dd.local.vectors import MOST_ROWS
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.literals import Verbatim
from dbt_incremental_dd.trace.arrow import arrow_type

_GENERATORS = {"explode": 1, "posexplode": 2}
NAMES = frozenset(_GENERATORS)
"""In lower case."""
_MANY = "a generator of many rows"


def generated(rows: Table, call: Expr, outputs: Sequence[str], constants: Constants, *, outer: bool) -> Table:
    """As ``Engine.generate`` says. Raises NotExact."""
    name, arguments = _call(call.tree)
    if len(outputs) != _GENERATORS.get(name) or len(arguments) != 1:
        raise NotExact(call.sql)
    lists, type = _lists(rows, arguments[0], constants)
    places: list[int] = []
    positions: list[int | None] = []
    values: list[Any] = []
    for place, items in enumerate(lists):
        if len(places) + len(items or ()) > MOST_ROWS:
            raise NotExact(_MANY)
        if items:
            places += [place] * len(items)
            positions += range(len(items))
            values += items
        elif outer:
            places.append(place)
            positions.append(None)
            values.append(None)
    columns = [(outputs[-1], _column(values, type), type)]
    if name == "posexplode":
        columns.insert(0, (outputs[0], pa.array(positions, arrow_type(INTEGER)), INTEGER))
    return rows.take(pa.array(places, pa.int64())).with_columns(columns)


def _column(values: list[Any], type: Type) -> pa.Array:
    return pa.array(values, pa.int32()).cast(pa.date32()) if type == DATE else pa.array(values, arrow_type(type))


def _call(tree: exp.Expr) -> tuple[str, list[exp.Expr]]:
    if not isinstance(tree, exp.Anonymous):
        raise NotExact
    return str(tree.this).lower(), tree.expressions


def _lists(rows: Table, tree: exp.Expr, constants: Constants) -> tuple[list[Sequence[Any] | None], Type]:
    """What the array has for each row, and the type of its elements; dates are days since 1970."""
    name, arguments = _call(tree)
    if is_split(tree):
        text, pattern = map(Expr.of, arguments)
        if pattern.refs:
            raise NotExact
        return list(parts(evaluate(rows, text, constants), constants.value_of(pattern.sql))), STRING
    if name != "sequence" or not 2 <= len(arguments) <= 3:
        raise NotExact
    found = [evaluate(rows, Expr.of(end), constants) for end in arguments[:2]]
    if {value.type for value in found} == {DATE}:
        days = [pc.cast(value.data, pa.int32()).to_pylist() for value in found]
        step = _step(arguments[2]) if len(arguments) == 3 else None
        if step is not None and step.months:
            return [_by_months(start, stop, step.months) for start, stop in zip(*days, strict=True)], DATE
        steps = [] if step is None else [[step.days] * rows.num_rows]
        return [_sequence(*row) for row in zip(*days, *steps, strict=True)], DATE
    found += [evaluate(rows, Expr.of(step), constants) for step in arguments[2:]]
    type = common_type([value.type for value in found])
    if type not in INTEGERS:
        raise NotExact
    columns = [widened(value, LONG).data.to_pylist() for value in found]
    return [_sequence(*row) for row in zip(*columns, strict=True)], type


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
        raise NotExact(_MANY)
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
        raise NotExact(_MANY)
    return range(start, stop + (1 if step > 0 else -1), step)
