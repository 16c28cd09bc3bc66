"""Generators (explode, inline, ...): LATERAL VIEW, LATERAL in FROM, and in the select list."""

from __future__ import annotations

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.block import Environment
from dbt_incremental_dd.frontend.functions import GENERATORS
from dbt_incremental_dd.frontend.resolve import in_scope, resolve
from dbt_incremental_dd.frontend.scope import Named, Scope, Source
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Domain, Filter, FlatMap, Map, OuterJoin

Part = tuple[Node, Scope]
_MAY_BE_EMPTY = ("explode", "posexplode", "inline", "variant_explode")
"""Generators that may make no row of one; OUTER means nothing to the others."""


def is_generator(tree: exp.Expr) -> bool:
    """Whether it is a call of a generator."""
    return isinstance(tree, exp.Anonymous) and str(tree.this).lower() in GENERATORS


def has_generator(tree: exp.Expr) -> bool:
    """Whether one is called anywhere in it."""
    return any(is_generator(call) for call in tree.find_all(exp.Anonymous))


def flat_map(node: Node, call: exp.Expr, *, outer: bool, outputs: tuple[str, ...]) -> FlatMap:
    """Each row with what the resolved call makes of it."""
    name = str(call.this).lower()
    kept = name.endswith("_outer") or (outer and name in _MAY_BE_EMPTY)
    return FlatMap(node, Expr.of(call), kept, outputs)


def lateral_views(select: exp.Select, part: Part, environment: Environment) -> Part:
    """The plan with all of a SELECT's LATERAL VIEWs."""
    laterals = select.args.get("laterals") or ()
    joins = len(select.args.get("joins") or ())
    for i, lateral in enumerate(laterals):
        query = from_so_far(select, joins, i)
        part = _lateral(lateral, outer=bool(lateral.args.get("outer")), part=part, query=query, environment=environment)
    return part


def from_so_far(select: exp.Select, joins: int, laterals: int = 0) -> exp.Select:
    """A SELECT with an empty list, and FROM with so many of its joins and lateral views."""
    query = exp.select()
    query.set("from_", select.args["from_"].copy())
    for clause, count in (("joins", joins), ("laterals", laterals)):
        query.set(clause, [item.copy() for item in (select.args.get(clause) or ())[:count]])
    return query


def _lateral(
    lateral: exp.Lateral, *, outer: bool, part: Part, query: exp.Select | None, environment: Environment
) -> Part:
    node, scope = part
    call = lateral.this
    if not is_generator(call):
        raise UnsupportedSQL("LATERAL of something else than explode and the like")
    alias = lateral.args.get("alias")
    names = [column.name for column in alias.columns] if alias is not None else []
    if not names:
        if query is None:
            raise UnsupportedSQL("LATERAL without column names", "Name its columns: LATERAL explode(x) AS t(y).")
        query.set("expressions", [call.copy()])
        names = list(environment.shape(query).names)
    columns = tuple(Named(name, environment.ids.new()) for name in names)
    flat = flat_map(
        node, resolve(call, in_scope(scope), scope), outer=outer, outputs=tuple(column.id for column in columns)
    )
    return flat, scope + Scope.of(Source((alias.name,) if alias is not None and alias.name else (), columns))


def lateral_join(part: Part, join: exp.Join, before: exp.Select | None, environment: Environment) -> Part:
    """``FROM t, LATERAL explode(t.x) AS e(y)``, also as LEFT JOIN, and with a condition.

    ``before``: a SELECT with what stands before it in FROM; Spark is asked about it for columns without names. Without
    a condition LEFT has no effect, since Spark simplifies the join (its rule OptimizeOneRowRelationSubquery).
    """
    on, side = join.args.get("on"), join.side
    if side not in ("", "LEFT"):
        raise UnsupportedSQL(f"a {side} LATERAL join")
    if on is None or (isinstance(on, exp.Boolean) and on.this):
        outer = side == "LEFT" and on is not None
        return _lateral(join.this, outer=outer, part=part, query=before, environment=environment)
    if not side:
        flat, scope = _lateral(join.this, outer=False, part=part, query=before, environment=environment)
        return Filter(flat, Expr.of(resolve(on, in_scope(scope), scope))), scope
    return _left_on(part, join.this, before, on=on, environment=environment)


def _left_on(
    part: Part, lateral: exp.Lateral, before: exp.Select | None, *, on: exp.Expr, environment: Environment
) -> Part:
    """Rows of which the condition leaves nothing are kept; the generator runs once for each value of its arguments."""
    node = part[0]
    flat, both = _lateral(lateral, outer=False, part=part, query=before, environment=environment)
    assert isinstance(flat, FlatMap)
    fresh = {id: environment.ids.new() for id in sorted(flat.generator.refs)}
    renames = {id: Expr.column(new) for id, new in fresh.items()}
    domain = Domain(Map(node, tuple((new, Expr.column(id)) for id, new in fresh.items())))
    rows = FlatMap(domain, flat.generator.substitute(renames), False, flat.outputs)
    ties = (Expr(f"{id} <=> {new}") for id, new in fresh.items())
    return OuterJoin("left", node, rows, (*ties, Expr.of(resolve(on, in_scope(both), both)))), both


def names_in_select(select: exp.Select, position: int, others: int, environment: Environment) -> tuple[str, ...]:
    """Spark's names of the columns that the generator at ``position`` makes among ``others`` columns."""
    names = environment.shape(select).names
    return names[position : position + len(names) - others]
