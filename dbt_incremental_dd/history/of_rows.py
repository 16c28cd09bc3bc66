"""The history of rows without a key: how often each is there over time, cut into intervals.

An interval begins with the run that a row comes in, and ends with the run that it goes in. Where equal rows are there
more than once, those that came last go first.
"""

from __future__ import annotations

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.history.history import History
from dbt_incremental_dd.history.stored import KnownVersions, is_open
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Order
from dbt_incremental_dd.relation.engine import Branch, Running
from dbt_incremental_dd.relation.keys import keys_of
from dbt_incremental_dd.relation.relation import Relation, plus
from dbt_incremental_dd.trace.spark_reader import quote_name

_AT, _OPEN, _CURRENT, _PAST = "dd_at", "dd_open", "dd_current", "dd_past"
_WENT, _LATER, _CLOSED = "dd_went", "dd_later", "dd_closed"


def intervals_of_rows(history: History, change: Relation, stored: KnownVersions | None, at: Time) -> Relation | None:
    """The history's delta for the query's, which is consolidated, at the time ``at`` (ms)."""
    query = tuple(name for name in change.names if name != DIFF)
    ends = [(_AT, Expr(f"timestamp_millis({at}L)")), (_OPEN, Expr(history.end))]
    came = change.filter(Expr(f"{DIFF} > 0")).extend([*ends, (_CURRENT, Expr("TRUE"))])
    begins, through, current = (history.names[role] for role in ("from", "to", "current"))
    opened = came.select([*((name, name) for name in query), (begins, _AT), (through, _OPEN), (current, _CURRENT)])
    return plus([opened, _closed(history, change, stored, query, ends) if stored is not None else None])


def _closed(
    history: History, change: Relation, stored: KnownVersions, query: tuple[str, ...], ends: list[tuple[str, Expr]]
) -> Relation | None:
    went = change.filter(Expr(f"{DIFF} < 0")).localized()
    if went.is_empty:
        return None
    went = went.extend([(_WENT, Expr(f"-{DIFF}"))])
    found = stored.of(change.workspace, keys_of(went, query)).filter(Expr(is_open(history)))
    begins, through, current = (history.names[role] for role in ("from", "to", "current"))
    order = [Order(Expr(quote_name(begins)), descending=True, nulls_first=False)]
    numbered = found.running(query, order, [Running(_LATER, Expr(DIFF))]).lookup(went, query, [(_WENT, _WENT)])
    taken = f"greatest(0L, least({DIFF}, {_WENT} - {_LATER}))"
    closing = numbered.extend([(_CLOSED, Expr(taken)), *ends, (_PAST, Expr("FALSE"))])
    same = [(name, name) for name in query]
    was = Branch([*same, (begins, begins), (through, through), (current, current)], Expr(f"-{_CLOSED}"))
    now = Branch([*same, (begins, begins), (through, _AT), (current, _PAST)], Expr(_CLOSED))
    return closing.unpivot([was, now])
