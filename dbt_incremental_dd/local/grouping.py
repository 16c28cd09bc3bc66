"""Groups of rows on the driver, and what sums, minima and maxima are of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import FLOATS, LONG, Decimal, Type
from dbt_incremental_dd.local.decimals import EXACT, largest
from dbt_incremental_dd.local.floats import canonical, of_ranks, ranks
from dbt_incremental_dd.local.nested import decoded, encoded, has_order, is_nested
from dbt_incremental_dd.local.table import Table, normalized, require_comparable
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.trace.arrow import arrow_type, is_ordered

_ALL = "dd_all"
"""The key of the one group of everything."""
_LONG = 2**63


@dataclass(frozen=True)
class Measured:
    """What ``function`` (sum, min, max) makes of a group's values; ``type`` is the result's."""

    name: str
    function: str
    value: Value
    type: Type


def grouped(table: Table, keys: Sequence[str], measures: Sequence[Measured]) -> Table:
    """The keys, and each measure of each group; a sum of nothing is 0. Raises NotExact."""
    require_comparable(table, keys)
    if len(keys) == 1 and not measures and not is_nested(table.arrow[keys[0]]):
        values = pa.table([pc.unique(canonical(table.arrow[keys[0]]))], list(keys))
        return Table(values, table.schema.select(tuple(keys)))
    rows = normalized(table.arrow.select(list(keys))) if keys else pa.table({_ALL: pa.repeat(0, table.num_rows)})
    by, how = rows.column_names, []
    for measure in measures:
        rows = rows.append_column(measure.name, _summable(measure.value) if _is_sum(measure) else _ordered(measure))
        how.append((measure.name, measure.function))
    rows, nested = encoded(rows, rows.column_names)
    values = {measure.name: f"{measure.name}_{measure.function}" for measure in measures}
    try:
        found = rows.group_by(by, use_threads=False).aggregate(how)
        found = decoded(found, {values.get(name, name): known for name, known in nested.items()})
        columns = {id: found[id] for id in keys}
        columns |= {m.name: _result(found[values[m.name]], m) for m in measures}
    except pa.ArrowException as error:  # a type that it does not order, a sum that does not fit
        raise NotExact(str(error)) from error
    if not keys and not table.num_rows:
        columns = {m.name: _of_nothing(m) for m in measures}
    schema = (*table.schema.select(tuple(keys)), *(Column(m.name, m.type) for m in measures))
    return Table(pa.table(columns), Schema(schema))


def _is_sum(measure: Measured) -> bool:
    return measure.function == "sum"


def _summable(value: Value) -> pa.ChunkedArray:
    """Values whose sum does not overflow, however they are grouped."""
    if value.type != LONG and not isinstance(value.type, Decimal):
        raise NotExact(f"sums of {value.type}")
    most = EXACT.multiply(largest(value), len(value.data))
    if most >= (10 ** (38 - value.type.scale) if isinstance(value.type, Decimal) else _LONG):
        raise NotExact("sums that may overflow")
    return pc.cast(value.data, pa.decimal128(38, value.type.scale)) if isinstance(value.type, Decimal) else value.data


def _ordered(measure: Measured) -> pa.ChunkedArray:
    if measure.value.type in FLOATS:
        return ranks(measure.value.data, one_zero=False)
    type = measure.value.type
    if not is_ordered(Schema((Column(measure.name, type),))) and not has_order(type):
        raise NotExact(f"an order of {type}")
    return measure.value.data


def _result(values: pa.ChunkedArray, measure: Measured) -> pa.ChunkedArray:
    if measure.type in FLOATS:
        return of_ranks(values, arrow_type(measure.type))
    values = pc.fill_null(values, pa.scalar(0).cast(values.type)) if _is_sum(measure) else values
    return values.cast(arrow_type(measure.type))


def _of_nothing(measure: Measured) -> pa.Array:
    return pa.array([0 if _is_sum(measure) else None], pa.int64() if _is_sum(measure) else None).cast(
        arrow_type(measure.type)
    )
