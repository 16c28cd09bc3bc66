"""Spark's time windows: ``window``, which gives a row to each window that it lies in, and ``session_window``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.aggregate import form, key_columns, replaced, with_columns
from dbt_incremental_dd.frontend.resolve import Lookup, resolve
from dbt_incremental_dd.frontend.scope import Ids
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import FlatMap, Window

Rewrite = Callable[[exp.Expr], exp.Expr]
_NAMES = ("window", "session_window")
_TICK = "INTERVAL '0.000001' SECOND"


def time_windows(trees: Iterable[exp.Expr]) -> list[exp.Expr]:
    """The calls in them, each form once."""
    calls = [call for tree in trees for call in tree.find_all(exp.Anonymous) if str(call.this).lower() in _NAMES]
    return list({form(call): call for call in calls}.values())


def refuse_time_windows(trees: Iterable[exp.Expr], clause: str) -> None:
    """Raises UnsupportedSQL where a clause that keeps rows as they are has one."""
    for call in time_windows(trees):
        raise UnsupportedSQL(f"{str(call.this).lower()}() in {clause}")


def named(group: exp.Group | None, look: Lookup) -> Lookup:
    """``window`` and ``session_window`` are the names of what GROUP BY makes by them."""
    values = {}
    for key in group.expressions if group is not None else ():
        if isinstance(key, exp.Anonymous) and str(key.this).lower() in _NAMES:
            values[str(key.this).lower()] = resolve(key, look)
    return lambda parts: (values[parts[0].lower()].copy(), len(parts) - 1) if parts[0].lower() in values else None


def with_time_windows(
    node: Node, clauses: Sequence[exp.Expr], keys: Sequence[exp.Expr], carried: Sequence[Id], ids: Ids
) -> tuple[Node, Rewrite]:
    """The plan with each call as a column, and how clauses refer to it. ``keys`` are those of GROUP BY.

    A row has as many windows as it lies in, none where its time is NULL.
    """
    known: dict[str, Id] = {}
    for call in time_windows((*clauses, *keys)):
        id = ids.new()
        node = FlatMap(node, Expr.of(_with_times(call.copy())), False, (id,))
        if str(call.this).lower() == "session_window":
            if form(call) not in map(form, keys):
                raise UnsupportedSQL("session_window() that is no key of GROUP BY")
            others = [key for key in keys if not time_windows([key])]
            node, id = _merged(node, id, others, carried, ids)
        known[form(call)] = id
    return node, lambda clause: _with_times(replaced(clause.copy(), known))


def _with_times(tree: exp.Expr) -> exp.Expr:
    """``window_time(w)`` is the last microsecond of the window."""
    holder = exp.Tuple(expressions=[tree])
    for call in list(holder.find_all(exp.Anonymous)):
        if str(call.this).lower() == "window_time":
            call.replace(Expr(f"({Expr.of(call.expressions[0]).sql}.end - {_TICK})").tree.copy())
    replaced_tree: exp.Expr = holder.expressions[0]
    return replaced_tree


def _merged(node: Node, raw: Id, others: Sequence[exp.Expr], carried: Sequence[Id], ids: Ids) -> tuple[Node, Id]:
    """Sessions of the same keys that meet or overlap become one: from the first start to the last end.

    Frames are by RANGE, so that rows with the same start get the same session, whatever their order.
    """
    node, known = key_columns(node, others, ids)
    keys = (*carried, *dict.fromkeys(known.values()))
    start, end = ids.new(), ids.new()
    node = with_columns(node, [(start, Expr(f"{raw}.start")), (end, Expr(f"{raw}.end"))])
    reached, first, last, session = ids.new(), ids.new(), ids.new(), ids.new()
    before = f"RANGE BETWEEN UNBOUNDED PRECEDING AND {_TICK} PRECEDING"
    node = _window(node, keys, reached, f"max({end})", f"ORDER BY {start} {before}")
    opened = f"max(CASE WHEN {reached} IS NULL OR {start} > {reached} THEN {start} END)"
    node = _window(node, keys, first, opened, f"ORDER BY {start} RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
    node = _window(node, (*keys, first), last, f"max({end})", "")
    return with_columns(node, [(session, Expr(f"named_struct('start', {first}, 'end', {last})"))]), session


def _window(node: Node, keys: tuple[Id, ...], id: Id, call: str, rest: str) -> Window:
    partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
    return Window(node, keys, ((id, Expr(f"{call} OVER ({partition}{rest})")),))
