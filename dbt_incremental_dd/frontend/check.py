"""Refuses, before anything is written, constructs that give another answer each time."""

from __future__ import annotations

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.clock import REMEDY, reads_clock_otherwise
from dbt_incremental_dd.frontend.functions import NONDETERMINISTIC
from dbt_incremental_dd.frontend.parsed import ParsedQuery
from dbt_incremental_dd.frontend.place import place

_RANDOM = "Use a deterministic expression, for example a hash of the row's key: xxhash64(id)."


def check(query: ParsedQuery) -> None:
    """Raises UnsupportedSQL, naming the construct, its place in the SQL, and what to write instead."""
    sql = query.sql
    for node in query.tree.walk():
        name = _nondeterministic(node)
        if name:
            raise UnsupportedSQL(f"{name}() gives another answer each time{place(sql, name)}", _RANDOM)
        clock = reads_clock_otherwise(node)
        if clock:
            shown = clock if "(" in clock else f"{clock}()"
            raise UnsupportedSQL(f"{shown} gives another answer each time{place(sql, clock.split('(')[0])}", REMEDY)
        if isinstance(node, exp.TableSample):
            raise UnsupportedSQL(
                f"TABLESAMPLE gives another answer each time{place(sql, 'tablesample')}",
                "Filter by a hash: pmod(xxhash64(id), 100) < 10.",
            )


def _nondeterministic(node: exp.Expr) -> str | None:
    if isinstance(node, exp.CurrentUser | exp.SessionUser):
        return "current_user"
    if not isinstance(node, exp.Anonymous):
        return None
    name = str(node.this).lower()
    return name if name in NONDETERMINISTIC else None
