"""FROM: relations, derived tables, joins, and LATERAL VIEWs."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.block import Block, Environment
from dbt_incremental_dd.frontend.functions import GENERATORS
from dbt_incremental_dd.frontend.relations import relation_of
from dbt_incremental_dd.frontend.resolve import resolve
from dbt_incremental_dd.frontend.scope import Named, Scope, Source
from dbt_incremental_dd.frontend.template import block_template
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Constant, FlatMap, Join, Map, Node, OuterJoin, SemiJoin

LowerQuery = Callable[[exp.Expression, Environment], Block]
Part = tuple[Node, Scope]


def lower_from(select: exp.Select, environment: Environment, lower_query: LowerQuery) -> Part:
    """All of FROM with its joins and lateral views."""
    from_ = select.args.get("from_")
    if from_ is None:
        raise UnsupportedSQL("a SELECT without FROM")
    part = _item(from_.this, environment, lower_query)
    for join in select.args.get("joins") or ():
        part = _join(part, join, environment, lower_query)
    for lateral in select.args.get("laterals") or ():
        part = _lateral_view(part, lateral, environment)
    return part


def _item(tree: exp.Expression, environment: Environment, lower_query: LowerQuery) -> Part:
    if tree.args.get("pivots"):
        raise UnsupportedSQL("UNPIVOT" if tree.args["pivots"][0].args.get("unpivot") else "PIVOT")
    if isinstance(tree, exp.Subquery):
        part = _subquery(tree, environment, lower_query)
    elif isinstance(tree, exp.Values):
        part = _aliased(_values(tree, environment), tree)
    elif isinstance(tree, exp.Table) and isinstance(tree.this, exp.Identifier):
        part = _table(tree, environment, lower_query)
    elif isinstance(tree, exp.Table):
        part = _aliased(_constant(exp.select("*").from_(tree.copy()), environment), tree)
    else:
        raise UnsupportedSQL(f"{type(tree).__name__} in FROM")
    for join in tree.args.get("joins") or ():
        part = _join(part, join, environment, lower_query)
    for lateral in tree.args.get("laterals") or ():
        part = _lateral_view(part, lateral, environment)
    return part


def _table(tree: exp.Table, environment: Environment, lower_query: LowerQuery) -> Part:
    if tree.args.get("version") or tree.args.get("when") or tree.args.get("sample"):
        raise UnsupportedSQL("a table's version or sample")
    cte = environment.ctes.get(tree.name.lower()) if len(tree.parts) == 1 else None
    if cte is not None:
        definition, outer = cte
        block = lower_query(definition.this, outer)
        names = [column.name for column in definition.args["alias"].columns]
        columns = _renamed(block.columns, names)
        return _aliased(Block(block.plan, columns), tree, default=(tree.name,))
    relation = relation_of(tree)
    if relation.key not in environment.inputs:
        raise UnsupportedSQL(f"it reads {relation.key}, which is not known", "Use ref() or source().")
    node, columns = environment.get(relation.key)
    return _aliased(Block(node, columns), tree, default=relation.parts)


def _subquery(tree: exp.Subquery, environment: Environment, lower_query: LowerQuery) -> Part:
    if isinstance(tree.this, exp.Table | exp.Subquery) and not isinstance(tree.this, exp.Query):
        return _item(tree.this, environment, lower_query)
    if tree.args.get("order") or tree.args.get("limit"):
        raise UnsupportedSQL("ORDER BY after a parenthesis")
    return _aliased(lower_query(tree.this, environment), tree)


def _values(tree: exp.Values, environment: Environment) -> Block:
    values = tree.copy()
    values.set("alias", None)
    return _constant(exp.select("*").from_(values), environment)


def _constant(query: exp.Expression, environment: Environment) -> Block:
    text, keys = block_template(query)
    if keys:
        raise UnsupportedSQL("a table function over a relation")
    schema = environment.analyze(text, keys)
    columns = tuple(Named(name, environment.ids.new()) for name in schema.names)
    return Block(Constant(text.format(), tuple(column.id for column in columns)), columns)


def _aliased(block: Block, tree: exp.Expression, default: tuple[str, ...] = ()) -> Part:
    alias = tree.args.get("alias")
    names = [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
    qualifier = (tree.alias,) if tree.alias else default
    return block.plan, Scope.of(Source(qualifier, _renamed(block.columns, names)))


def _renamed(columns: tuple[Named, ...], names: list[str]) -> tuple[Named, ...]:
    if not names:
        return columns
    return tuple(Named(name, column.id) for name, column in zip(names, columns, strict=True))


def _join(left: Part, join: exp.Join, environment: Environment, lower_query: LowerQuery) -> Part:
    if isinstance(join.this, exp.Lateral):
        raise UnsupportedSQL("LATERAL join")
    right = _item(join.this, environment, lower_query)
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    names = [column.name for column in join.args.get("using") or ()]
    if str(join.args.get("method") or "").upper() == "NATURAL":
        theirs = {column.name.lower() for column in right[1].visible}
        names = [column.name for column in left[1].visible if column.name.lower() in theirs]
    on = _using(left[1], right[1], names) if names else _on(join, left[1] + right[1])
    node, scope = _joined(left, right, side, kind, on)
    return _merged(node, scope, left[1], right[1], names, side, environment) if names else (node, scope)


def _on(join: exp.Join, scope: Scope) -> tuple[Expr, ...]:
    on = join.args.get("on")
    if on is None:
        return ()
    return tuple(c for c in Expr.of(resolve(on, scope)).conjuncts())


def _using(left: Scope, right: Scope, names: list[str]) -> tuple[Expr, ...]:
    pairs = []
    for name in names:
        a, b = left.find((name,)), right.find((name,))
        if a is None or b is None:
            raise UnsupportedSQL(f"USING column {name} cannot be resolved", "Both sides must have it.")
        pairs.append(Expr(f"{a[0]} = {b[0]}"))
    return tuple(pairs)


def _joined(left: Part, right: Part, side: str, kind: str, on: tuple[Expr, ...]) -> Part:
    (a, a_scope), (b, b_scope) = left, right
    if kind in ("SEMI", "ANTI"):
        if side == "RIGHT":
            raise UnsupportedSQL(f"RIGHT {kind} JOIN")
        return SemiJoin(kind == "ANTI", a, b, on), a_scope
    scope = a_scope + b_scope
    if side == "LEFT":
        return OuterJoin("left", a, b, on), scope
    if side == "RIGHT":
        return OuterJoin("left", b, a, on), scope
    if side == "FULL":
        return OuterJoin("full", a, b, on), scope
    return Join((a, b), on), scope


def _merged(
    node: Node, scope: Scope, left: Scope, right: Scope, names: list[str], side: str, environment: Environment
) -> Part:
    """USING: each of the columns once, in front; its value is of the side that always has one."""
    if scope.sources == left.sources:
        return node, scope
    merged, computed = [], []
    for name in names:
        a, b = left.find((name,)), right.find((name,))
        assert a is not None and b is not None
        if side == "FULL":
            id = environment.ids.new()
            computed.append((id, Expr(f"coalesce({a[0]}, {b[0]})")))
        else:
            id = b[0] if side == "RIGHT" else a[0]
        merged.append(Named(name, id))
    if computed:
        node = Map(node, (*((id, Expr.column(id)) for id in node.columns), *computed))
    using = {name.lower() for name in names}
    rest = tuple(c for c in left.visible + right.visible if c.name.lower() not in using)
    return node, Scope(scope.sources, (*merged, *rest))


def _lateral_view(part: Part, lateral: exp.Lateral, environment: Environment) -> Part:
    node, scope = part
    call = lateral.this
    name = str(call.this).lower() if isinstance(call, exp.Anonymous) else ""
    if name not in GENERATORS:
        raise UnsupportedSQL(f"LATERAL VIEW {name or type(call).__name__}")
    alias = lateral.args.get("alias")
    names = [column.name for column in alias.columns] if alias is not None else []
    if not names:
        raise UnsupportedSQL("LATERAL VIEW without column names", "Name its columns: LATERAL VIEW explode(x) t AS y.")
    columns = tuple(Named(name, environment.ids.new()) for name in names)
    generator = Expr.of(resolve(call, scope))
    outer = bool(lateral.args.get("outer"))
    flat = FlatMap(node, generator, outer, tuple(column.id for column in columns))
    return flat, scope + Scope.of(Source((alias.name,) if alias.name else (), columns))


__all__ = ["LowerQuery", "lower_from"]
