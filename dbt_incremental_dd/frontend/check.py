"""Refuses, before anything is written, constructs that give another answer each time."""

from __future__ import annotations

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.functions import NONDETERMINISTIC, OF_THE_CLOCK
from dbt_incremental_dd.frontend.place import place
from dbt_incremental_dd.frontend.relations import parse

_CLOCK = "Write dd_now() for the time of the run, or pass a time in as a dbt var."
_RANDOM = "Use a deterministic expression, for example a hash of the row's key: xxhash64(id)."
_CLOCK_NAMES = ("current_timestamp", "now", "current_date", "curdate", "localtimestamp", "current_time", *OF_THE_CLOCK)


def check(sql: str) -> None:
    """Raises UnsupportedSQL, naming the construct, its place in the SQL, and what to write instead."""
    tree = parse(sql)
    for node in tree.walk():
        name = _nondeterministic(node)
        if name:
            remedy = _CLOCK if name in _CLOCK_NAMES else _RANDOM
            raise UnsupportedSQL(f"{name}() gives another answer each time{place(sql, name)}", remedy)
        if isinstance(node, exp.TableSample):
            raise UnsupportedSQL(
                f"TABLESAMPLE gives another answer each time{place(sql, 'tablesample')}",
                "Filter by a hash: pmod(xxhash64(id), 100) < 10.",
            )


def _nondeterministic(node: exp.Expression) -> str | None:
    if isinstance(node, exp.CurrentTimestamp):
        return "current_timestamp"
    if isinstance(node, exp.CurrentDate):
        return "current_date"
    if isinstance(node, exp.CurrentUser | exp.SessionUser):
        return "current_user"
    if not isinstance(node, exp.Anonymous):
        return None
    name = str(node.this).lower()
    if name in NONDETERMINISTIC or (name in OF_THE_CLOCK and not node.expressions):
        return name
    return None
