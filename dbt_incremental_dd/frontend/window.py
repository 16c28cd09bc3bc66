"""Window functions: one Window node for each PARTITION BY list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.resolve import resolve
from dbt_incremental_dd.frontend.scope import Ids, Scope
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Id, Map, Node, Window

Rewrite = Callable[[exp.Expression], exp.Expression]


def lower_windows(
    node: Node, clauses: Sequence[exp.Expression], named: Mapping[str, exp.Window], scope: Scope, ids: Ids
) -> tuple[Node, Rewrite]:
    """The plan with all window functions of the clauses as columns, and how clauses refer to them."""
    windows = [w for clause in clauses for w in clause.find_all(exp.Window)]
    if not windows:
        return node, lambda clause: clause
    if any(w.find_ancestor(exp.Window) for w in windows):
        raise UnsupportedSQL("a window function inside another")
    complete = {Expr.of(w).sql: _complete(w, named, scope) for w in windows}
    node, keys = _partition_columns(node, complete, ids)
    made: dict[str, Id] = {}
    for partition in dict.fromkeys(keys.values()):
        functions = []
        for sql, window in complete.items():
            if keys[sql] == partition:
                made[sql] = ids.new()
                functions.append((made[sql], Expr.of(window)))
        node = Window(node, partition, tuple(functions))
    return node, lambda clause: _replace(clause.copy(), made)


def _complete(window: exp.Window, named: Mapping[str, exp.Window], scope: Scope) -> exp.Window:
    """The OVER clause with a named window written out."""
    name = window.args.get("alias")
    if name is None:
        return window
    definition = named.get(name.name.lower())
    if definition is None:
        raise UnsupportedSQL(f"window {name.name} is not defined")
    window = window.copy()
    window.set("alias", None)
    for part in ("partition_by", "order", "spec"):
        value = definition.args.get(part)
        if value:
            resolved = [resolve(v, scope) for v in value] if isinstance(value, list) else _resolved(value, scope)
            window.set(part, resolved)
    return window


def _resolved(value: exp.Expression, scope: Scope) -> exp.Expression:
    return resolve(value, scope) if value.find(exp.Column) else value.copy()


def _partition_columns(
    node: Node, windows: Mapping[str, exp.Window], ids: Ids
) -> tuple[Node, dict[str, tuple[Id, ...]]]:
    """Partition expressions as columns."""
    computed: dict[str, Id] = {}
    keys: dict[str, tuple[Id, ...]] = {}
    for sql, window in windows.items():
        columns = []
        for tree in window.args.get("partition_by") or ():
            expr = Expr.of(tree)
            if expr.as_column is None and expr.sql not in computed:
                computed[expr.sql] = ids.new()
            columns.append(expr.as_column or computed[expr.sql])
        keys[sql] = tuple(dict.fromkeys(columns))
    if computed:
        added = tuple((id, Expr(sql)) for sql, id in computed.items())
        node = Map(node, (*((id, Expr.column(id)) for id in node.columns), *added))
    return node, keys


def _replace(tree: exp.Expression, made: Mapping[str, Id]) -> exp.Expression:
    if isinstance(tree, exp.Window):
        return exp.column(made[Expr.of(tree).sql])
    for window in list(tree.find_all(exp.Window)):
        window.replace(exp.column(made[Expr.of(window).sql]))
    return tree
