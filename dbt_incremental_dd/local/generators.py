"""Generators on the driver: ``explode``, ``posexplode`` and ``inline`` of arrays, maps and sequences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from dbt_incremental_dd.core.types import DATE, INTEGER, INTEGERS, LONG, VOID, Array, Map, Struct, Type
from dbt_incremental_dd.local.calendar import add_months
from dbt_incremental_dd.local.coercion import common_type, widened
from dbt_incremental_dd.local.expressions import evaluate
from dbt_incremental_dd.local.functions.json_text import json_field
from dbt_incremental_dd.local.intervals import Interval, interval_of
from dbt_incremental_dd.local.lists import Lists
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import Constants, NotExact, Value
from dbt_incremental_dd.local.vectors import MOST_ROWS, constant_int, constant_text, flat, repeated
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.literals import Verbatim
from dbt_incremental_dd.trace.arrow import arrow_type

_GENERATORS = ("explode", "posexplode", "inline")
NAMES = frozenset((*_GENERATORS, "json_tuple", "stack"))
"""In lower case."""
_MANY = "a generator of many rows"


def generated(rows: Table, call: Expr, outputs: Sequence[str], constants: Constants, *, outer: bool) -> Table:
    """As ``Engine.generate`` says. Raises NotExact."""
    name, arguments = _call(call.tree)
    if name == "json_tuple":
        return _fields_of_json(rows, arguments, outputs, constants)
    if name == "stack":
        return _stacked(rows, arguments, outputs, constants)
    if name not in _GENERATORS or len(arguments) != 1:
        raise NotExact(call.sql)
    lists, types = _lists(rows, arguments[0], constants)
    if len(lists.rows) > MOST_ROWS:
        raise NotExact(_MANY)
    shown = np.maximum(lists.lengths, 1) if outer else lists.lengths
    places = np.repeat(np.arange(len(shown)), shown)
    positions = np.arange(len(places)) - np.repeat(np.cumsum(shown) - shown, shown)
    is_entry = positions < lists.lengths[places]
    at = pa.array(np.cumsum(is_entry) - 1, pa.int64(), mask=~is_entry)
    values = [(entries.take(at), type) for entries, type in zip(lists.entries, types, strict=True)]
    if name == "posexplode":
        values.insert(0, (pa.array(positions, arrow_type(INTEGER), mask=~is_entry), INTEGER))
    elif name == "inline":
        values = _fields(*values)
    if len(values) != len(outputs):
        raise NotExact(call.sql)
    columns = [(output, found, type) for output, (found, type) in zip(outputs, values, strict=True)]
    return rows.take(pa.array(places)).with_columns(columns)


def _fields_of_json(rows: Table, arguments: Sequence[exp.Expr], outputs: Sequence[str], constants: Constants) -> Table:
    """``json_tuple``: one row for each, of the fields of these names, which are constants."""
    text, *names = map(Expr.of, arguments)
    if len(names) != len(outputs) or any(name.refs for name in names):
        raise NotExact
    value = evaluate(rows, text, constants)
    wanted = [constant_text(constants.value_of(name.sql)) for name in names]
    found = [json_field(value, name) for name in wanted]
    return rows.with_columns([(output, one.data, one.type) for output, one in zip(outputs, found, strict=True)])


def _stacked(rows: Table, arguments: Sequence[exp.Expr], outputs: Sequence[str], constants: Constants) -> Table:
    """``stack(n, ...)``: the values in ``n`` rows, those that are missing at the end are NULL."""
    number, *others = map(Expr.of, arguments)
    count = 0 if number.refs else constant_int(constants.value_of(number.sql))
    width = -(-len(others) // count) if count > 0 else 0
    if width != len(outputs) or rows.num_rows * count > MOST_ROWS:
        raise NotExact("a stack")
    found = [evaluate(rows, other, constants) if other.refs else constants.value_of(other.sql) for other in others]
    found += [Value(pa.scalar(None), VOID)] * (width * count - len(found))
    order = np.arange(rows.num_rows * count).reshape(count, rows.num_rows).T.ravel()
    columns = []
    for place, output in enumerate(outputs):
        of_one = found[place::width]
        types = {value.type for value in of_one} - {VOID}
        if len(types) != 1:
            raise NotExact("values of several types")
        (type,) = types
        parts = [flat(repeated(widened(value, type), rows.num_rows)) for value in of_one]
        columns.append((output, pa.concat_arrays(parts).take(pa.array(order)), type))
    return rows.take(pa.array(np.repeat(np.arange(rows.num_rows), count))).with_columns(columns)


def _fields(*values: tuple[pa.Array, Type]) -> list[tuple[pa.Array, Type]]:
    """Of structs."""
    found, type = values[0]
    if len(values) > 1 or not isinstance(type, Struct):
        raise NotExact
    return [(pc.struct_field(found, [place]), field.type) for place, field in enumerate(type.fields)]


def _call(tree: exp.Expr) -> tuple[str, list[exp.Expr]]:
    if not isinstance(tree, exp.Anonymous):
        raise NotExact
    return str(tree.this).lower(), tree.expressions


def _lists(rows: Table, tree: exp.Expr, constants: Constants) -> tuple[Lists, tuple[Type, ...]]:
    """What the array or the map has for each row, and the types of its entries."""
    if isinstance(tree, exp.Anonymous) and str(tree.this).lower() == "sequence":
        return _sequences(rows, tree.expressions, constants)
    found = evaluate(rows, Expr.of(tree), constants)
    match found.type:
        case Array():
            return Lists.of(found.data), (found.type.element,)
        case Map():
            return Lists.of(found.data), (found.type.key, found.type.value)
    raise NotExact


def _sequences(rows: Table, arguments: Sequence[exp.Expr], constants: Constants) -> tuple[Lists, tuple[Type, ...]]:
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
        raise NotExact(_MANY)
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
