"""CASE and IF on the driver: each branch is evaluated for the rows that come to it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from dbt_incremental_dd.core.types import VOID
from dbt_incremental_dd.local.coercion import common_type, widened
from dbt_incremental_dd.local.evaluator import Evaluator
from dbt_incremental_dd.local.predicates import LIKE, LOGIC, truth
from dbt_incremental_dd.local.value import Value
from dbt_incremental_dd.local.vectors import flat, repeated, row_numbers
from dbt_incremental_dd.logical.notes import noted

Branch = tuple[exp.Expr, exp.Expr]
"""A condition, and the value where it holds."""
_SAFE = {exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Paren, *LOGIC} - {exp.Escape, *LIKE}


def case_value(branches: Sequence[Branch], default: exp.Expr | None, evaluator: Evaluator) -> Value:
    """Each branch for the rows that come to it, and for no others: they might raise an error. Raises NotExact."""
    values = [*(value for _, value in branches), *([default] if default else [])]
    if not any(noted(tree, _may_fail) for tree in (*values, *(condition for condition, _ in branches[1:]))):
        return _of_all_rows(branches, default, evaluator)
    places, left, parts = row_numbers(evaluator.rows), evaluator, []
    for condition, value in branches:
        holds = pc.fill_null(truth(condition, left), False)
        inside, outside = left.split(holds)
        parts.append((places.filter(flat(holds)), inside.value(value)))
        places, left = places.filter(pc.invert(flat(holds))), outside
    parts.append((places, left.value(default) if default else Value(pa.scalar(None), VOID)))
    type = common_type([value.type for _, value in parts])
    present = [part for part in parts if len(part[0])] or parts[:1]
    if len(present) == 1:
        return Value(repeated(widened(present[0][1], type), evaluator.rows), type)
    pieces = [flat(repeated(widened(value, type), len(where))) for where, value in present]
    order = pc.sort_indices(pa.concat_arrays([where for where, _ in present]))
    return Value(pa.chunked_array([pa.concat_arrays(pieces).take(order)]), type)


def _of_all_rows(branches: Sequence[Branch], default: exp.Expr | None, evaluator: Evaluator) -> Value:
    """The same where every branch can be evaluated for all rows."""
    values = [
        *(evaluator.value(value) for _, value in branches),
        evaluator.value(default) if default else Value(pa.scalar(None), VOID),
    ]
    type = common_type([value.type for value in values])
    *wanted, found = (widened(value, type).data for value in values)
    for (condition, _), value in reversed(list(zip(branches, wanted, strict=True))):
        found = pc.if_else(pc.fill_null(truth(condition, evaluator), False), value, found)
    return Value(found, type)


def _may_fail(tree: exp.Expr) -> bool:
    """Whether the expression is an error for some value of a row."""
    return any(type(node) not in _SAFE for node in tree.walk())
