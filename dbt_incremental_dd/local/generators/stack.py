"""``stack``: its arguments in so many rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from sqlglot import exp

from dbt_incremental_dd.core.types import VOID
from dbt_incremental_dd.local.coercion import widened
from dbt_incremental_dd.local.expressions import evaluate
from dbt_incremental_dd.local.generators.generator import MANY, Generators
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import Constants, NotExact, Value
from dbt_incremental_dd.local.vectors import MOST_ROWS, constant_int, flat_column
from dbt_incremental_dd.logical.expr import Expr


def _stacked(
    rows: Table, arguments: Sequence[exp.Expr], outputs: Sequence[str], constants: Constants, *, outer: bool
) -> Table:
    """The last row's values that are missing are NULL."""
    number, *others = map(Expr.of, arguments)
    count = 0 if number.refs else constant_int(constants.value_of(number.sql))
    width = -(-len(others) // count) if count > 0 else 0
    if width != len(outputs) or rows.num_rows * count > MOST_ROWS:
        raise NotExact(MANY)
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
        parts = [flat_column(widened(value, type), rows.num_rows) for value in of_one]
        columns.append((output, pa.concat_arrays(parts).take(pa.array(order)), type))
    return rows.take(pa.array(np.repeat(np.arange(rows.num_rows), count))).with_columns(columns)


GENERATORS: Generators = {"stack": _stacked}
