"""New and old output rows of groups, as SQL over their sums' change and the old sums beside it."""

from __future__ import annotations

import re

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.reduce import Accumulate, Extreme

OLD = "dd_old_"
NEW = "dd_new_"
FIRST, SECOND = "dd_first", "dd_second"
"""The multiplicity's change of a group's new row, and of its old one."""


def sum_types(node: Accumulate) -> dict[str, str]:
    """The sums with their SQL types."""
    return {DIFF: "BIGINT", **{a.name: a.dtype for a in node.accumulators}}


def compared(node: Accumulate, merged: str, from_nothing: bool) -> str:
    """A query: for each group its sums' change, its new and its old output row (``dd_new_<id>``, ``dd_old_<id>``), and
    the multiplicities' changes; a row that stays as it is counts as the new one.

    ``merged``: a relation of the sums' change, and ``dd_old_`` before the name of each sum's old value.
    """
    types = sum_types(node)
    old = {name: f"`{OLD + name}`" for name in types}
    new = {name: f"CAST(`{OLD + name}` + `{name}` AS {dtype})" for name, dtype in types.items()}
    rows = [
        *node.keys,
        *(f"`{name}`" for name in types),
        *(f"{_bind(sql, new, node, NEW)} AS `{NEW}{id}`" for id, sql in node.outputs),
        *(f"{_bind(sql, old, node, OLD)} AS `{OLD}{id}`" for id, sql in node.outputs),
        f"{multiplicity(node, new[DIFF])} AS dd_is",
        f"{'0L' if from_nothing else multiplicity(node, old[DIFF])} AS dd_was",
    ]
    same = " AND ".join(f"`{NEW}{id}` <=> `{OLD}{id}`" for id, _ in node.outputs) or "TRUE"
    return (
        f"SELECT *, CASE WHEN {same} THEN dd_is - dd_was ELSE dd_is END AS {FIRST}, "
        f"CASE WHEN {same} THEN 0L ELSE -dd_was END AS {SECOND} FROM (SELECT {', '.join(rows)} FROM {merged})"
    )


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


def _bind(sql: str, sums: dict[str, str], node: Accumulate, extremes: str) -> str:
    """An output's SQL with the sums' names replaced by columns of the merged relation."""
    for e in node.extremes:
        if sql == e.id:
            return f"`{extremes}{e.id}`"
    for name in sorted(sums, key=len, reverse=True):
        sql = _replace_word(sql, name, sums[name])
    return sql


def _replace_word(sql: str, word: str, by: str) -> str:
    return re.sub(rf"(?<![\w`]){re.escape(word)}(?![\w`])", lambda _: by, sql)
