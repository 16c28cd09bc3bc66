"""New and old rows of groups, and how the new ones replace the old ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.reduce import Accumulate, Extreme
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id
from dbt_incremental_dd.relation.engine import Branch, Outputs
from dbt_incremental_dd.relation.relation import Relation

OLD = "dd_old_"
NEW = "dd_new_"
_WAS, _IS, _SAME = "dd_was", "dd_is", "dd_same"


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


def compared(wide: Relation, ids: Sequence[Id], *, was: str, is_: str) -> Relation:
    """Rows of groups, whose columns are there old and new, with what ``replaced`` needs to know of them.

    ``was`` and ``is_``: how often the old and the new row is there, as SQL.
    """
    same = " AND ".join(f"{NEW}{id} <=> {OLD}{id}" for id in ids) or "TRUE"
    return wide.extend([(_IS, Expr(is_)), (_WAS, Expr(was)), (_SAME, Expr(same))])


def replaced(wide: Relation, keys: Sequence[Id], ids: Sequence[Id]) -> Relation:
    """The law of every operator that keeps a row per group: the new row minus the old one. A row that stays the same
    counts as the new one. ``wide`` is the result of ``compared``."""
    common = [(key, key) for key in keys]
    new = Expr(f"CASE WHEN {_SAME} THEN {_IS} - {_WAS} ELSE {_IS} END")
    old = Expr(f"CASE WHEN {_SAME} THEN 0L ELSE -{_WAS} END")
    branches = [
        Branch([*common, *((id, NEW + id) for id in ids)], new),
        Branch([*common, *((id, OLD + id) for id in ids)], old),
    ]
    return replace(wide.unpivot(branches), consolidated=True)


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
