"""Window functions: one Window node for each PARTITION BY list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.aggregate import form, replaced, with_columns
from dbt_incremental_dd.frontend.resolve import resolved_column
from dbt_incremental_dd.frontend.scope import Ids
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Window

Rewrite = Callable[[exp.Expr], exp.Expr]


def with_windows_written_out(select: exp.Select) -> exp.Select:
    """A copy in which no OVER refers to a named window."""
    select = select.copy()
    named = {window.name.lower(): window for window in select.args.get("windows") or ()}
    for window in list(select.find_all(exp.Window)):
        name = window.args.get("alias")
        if name is None or window.find_ancestor(exp.Select) is not select:
            continue
        definition = named.get(name.name.lower())
        if definition is None:
            raise UnsupportedSQL(f"window {name.name} is not defined")
        window.set("alias", None)
        for part in ("partition_by", "order", "spec"):
            value = definition.args.get(part)
            if value:
                window.set(part, [v.copy() for v in value] if isinstance(value, list) else value.copy())
    select.set("windows", None)
    return select


def lower_windows(
    node: Node, clauses: Iterable[exp.Expr], ids: Ids, carried: tuple[Id, ...] = ()
) -> tuple[Node, Rewrite]:
    """The plan with all window functions of the clauses as columns, and how clauses refer to them.

    ``carried`` columns are part of every partition.
    """
    found = [window for clause in clauses for window in clause.find_all(exp.Window)]
    if any(window.find_ancestor(exp.Window) for window in found):
        raise UnsupportedSQL("a window function inside another")
    windows = {form(window): _partitioned_by(window, carried) for window in found}
    node, keys = _partition_columns(node, windows, ids)
    made: dict[str, Id] = {name: ids.new() for name in windows}
    for partition in dict.fromkeys(keys.values()):
        functions = tuple((made[name], Expr.of(w)) for name, w in windows.items() if keys[name] == partition)
        node = Window(node, partition, functions)
    return node, lambda clause: replaced(clause.copy(), made)


def _partitioned_by(window: exp.Window, carried: tuple[Id, ...]) -> exp.Window:
    """A copy with these columns in PARTITION BY, too."""
    window = window.copy()
    columns = [resolved_column(id) for id in carried]
    window.set("partition_by", [*columns, *(window.args.get("partition_by") or ())])
    return window


def _partition_columns(
    node: Node, windows: Mapping[str, exp.Window], ids: Ids
) -> tuple[Node, dict[str, tuple[Id, ...]]]:
    """Partition expressions as columns."""
    computed: dict[str, tuple[Id, Expr]] = {}
    keys: dict[str, tuple[Id, ...]] = {}
    for name, window in windows.items():
        columns = []
        for tree in window.args.get("partition_by") or ():
            expr = Expr.of(tree)
            if expr.as_column is None and form(tree) not in computed:
                computed[form(tree)] = (ids.new(), expr)
            columns.append(expr.as_column or computed[form(tree)][0])
        keys[name] = tuple(dict.fromkeys(columns))
    return with_columns(node, list(computed.values())), keys
