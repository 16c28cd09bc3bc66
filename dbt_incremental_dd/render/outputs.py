"""New and old output rows of groups, as expressions over their sums' change and the old sums beside it."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.reduce import Accumulate, Extreme
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.engine import Outputs

OLD = "dd_old_"
NEW = "dd_new_"


def sum_types(node: Accumulate) -> dict[str, str]:
    """The sums with their SQL types."""
    return {DIFF: "BIGINT", **{a.name: a.dtype for a in node.accumulators}}


def old_outputs(node: Accumulate) -> Outputs:
    """Each output (``dd_old_<id>``) of the old sums (``dd_old_<name>``); an extreme is there already."""
    return _bound(node, OLD, {name: Expr(OLD + name) for name in sum_types(node)})


def new_outputs(node: Accumulate) -> Outputs:
    """Each output (``dd_new_<id>``) of the sums of old ones and change; an extreme is there already."""
    types = sum_types(node).items()
    return _bound(node, NEW, {name: Expr(f"CAST({OLD}{name} + {name} AS {dtype})") for name, dtype in types})


def _bound(node: Accumulate, prefix: str, sums: Mapping[str, Expr]) -> Outputs:
    extremes = {e.id for e in node.extremes}
    return [(prefix + id, Expr(sql).substitute(sums)) for id, sql in node.outputs if sql not in extremes]


def in_out(kind: str, e: Extreme) -> str:
    """The column of the extreme of what comes ``in`` or goes ``out``."""
    return f"dd_{kind}_{e.id}"


def multiplicity(node: Accumulate, count: str) -> str:
    """How often a group's row is there, as SQL, by the SQL of its count."""
    if node.global_row:
        return "1L"
    if node.threshold:
        return f"greatest({count}, 0L)"
    return f"CASE WHEN {count} > 0 THEN 1L ELSE 0L END"
