"""Equi-joins on the driver, by Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce as fold

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core import thresholds
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Schema
from dbt_incremental_dd.core.types import LONG
from dbt_incremental_dd.differential.join import Equality
from dbt_incremental_dd.local.expressions import evaluate, truth
from dbt_incremental_dd.local.table import Table, member_mask, row_numbers
from dbt_incremental_dd.local.value import Constants, NotExact
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.trace.arrow import BOUNDED_TYPES, is_readable

_OTHER = "dd_diff_other"
_ROW = "dd_row"
_Keys = Sequence[tuple[str, str]]


def joined(
    left: Table, right: Table, kind: str, equalities: Sequence[Equality], residual: Sequence[Expr], constants: Constants
) -> Table:
    """As ``Engine.join`` says. Raises NotExact for equalities that are not between values of one type on which Arrow
    and Spark agree, and where there would be too many rows."""
    if not equalities or any(equality.null_safe for equality in equalities):
        raise NotExact("a join by other than equalities")
    names = (*left.schema.names, *(right.schema.names if kind in ("inner", "left") else ()))
    left, lefts = _keyed(left, [equality.left for equality in equalities], constants)
    right, rights = _keyed(right, [equality.right for equality in equalities], constants)
    keys = list(zip(lefts, rights, strict=True))
    _require_agreement(left, right, keys)
    found = _of_kind(left, right, kind, keys=keys, residual=residual, constants=constants)
    return found.select([(name, name) for name in dict.fromkeys((*(n for n in names if n != DIFF), DIFF))])


def _of_kind(
    left: Table, right: Table, kind: str, keys: _Keys, residual: Sequence[Expr], constants: Constants
) -> Table:
    def kept(rows: Table) -> Table:
        return fold(lambda some, predicate: some.filter(truth(some, predicate, constants)), residual, rows)

    if kind == "inner":
        return kept(_matches(left, right, keys))
    if not residual and kind != "left":
        wanted = right.arrow.select([b for _, b in keys]).rename_columns([a for a, _ in keys]).drop_null()
        mask = member_mask(left.arrow, wanted, [a for a, _ in keys])
        return left.filter(mask if kind == "semi" else pc.invert(mask))
    numbers = row_numbers(left.num_rows)
    matches = kept(_matches(left.with_column(_ROW, numbers, LONG), right, keys))
    matched = pc.is_in(numbers, value_set=matches.arrow[_ROW].combine_chunks())
    if kind != "left":
        return left.filter(matched if kind == "semi" else pc.invert(matched))
    unmatched = left.arrow.filter(pc.invert(matched))
    return matches.replaced(pa.concat_tables([matches.arrow, unmatched], promote_options="default").combine_chunks())


def _keyed(rows: Table, keys: Sequence[Expr], constants: Constants) -> tuple[Table, list[str]]:
    """The rows with what a join compares as columns, and the names of these."""
    names = []
    for number, key in enumerate(keys):
        name = key.as_column
        if name is None or name in names:
            name = f"dd_key_{number}"
            value = evaluate(rows, key, constants)
            rows = rows.with_column(name, value.data, value.type)
        names.append(name)
    return rows, names


def _require_agreement(left: Table, right: Table, keys: _Keys) -> None:
    """Raises NotExact for keys of several types, or of types of which Arrow has another ``=``."""
    if not is_readable(left.schema) or not is_readable(right.schema):
        raise NotExact("a join of nested columns")
    if any(left.type(a) != right.type(b) or left.type(a) not in BOUNDED_TYPES for a, b in keys):
        raise NotExact("a join by keys of several types")


def _matches(left: Table, right: Table, keys: _Keys) -> Table:
    """The inner join by columns, diffs multiplied."""
    if left.num_rows * _most_equal(right.arrow, [b for _, b in keys]) > thresholds.JOINED_ROWS:
        raise NotExact("a join of many rows")
    theirs = {name: f"dd_right_{name}" if name in left.schema.names else name for name in right.schema.names}
    schema = Schema(tuple(c for c in (*left.schema, *(c for c in right.schema if theirs[c.name] == c.name))))
    both = left.arrow.join(
        right.arrow.rename_columns([_OTHER if name == DIFF else theirs[name] for name in right.schema.names]),
        keys=[a for a, _ in keys],
        right_keys=[theirs[b] for _, b in keys],
        join_type="inner",
        coalesce_keys=False,
    )
    diffs = pc.multiply_checked(both[DIFF], both[_OTHER])
    columns = [column for column in schema if column.name != DIFF]
    arrow = pa.table({**{column.name: both[column.name] for column in columns}, DIFF: diffs})
    return Table(arrow, Schema((*columns, DIFF_COLUMN)))


def _most_equal(table: pa.Table, names: list[str]) -> int:
    """The number of rows that the most frequent key has."""
    if not table.num_rows:
        return 0
    counted = table.select(names).group_by(names).aggregate([([], "count_all")])
    return int(pc.max(counted["count_all"]).as_py())
