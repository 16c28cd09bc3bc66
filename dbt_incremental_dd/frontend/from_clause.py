"""FROM: relations, derived tables and joins."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.aggregate import with_columns
from dbt_incremental_dd.frontend.block import Block, Environment
from dbt_incremental_dd.frontend.generators import Part, lateral_join, lateral_views
from dbt_incremental_dd.frontend.relations import relation_of
from dbt_incremental_dd.frontend.resolve import in_scope, resolve
from dbt_incremental_dd.frontend.scope import Named, Scope, Source
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Constant, Join, Node, OuterJoin, SemiJoin

LowerQuery = Callable[[exp.Expression, Environment], Block]


def lower_from(select: exp.Select, environment: Environment, lower_query: LowerQuery) -> Part:
    """All of FROM with its joins and lateral views; without FROM, one row without columns that can be named."""
    from_ = select.args.get("from_")
    if from_ is None:
        return Constant("SELECT 1 AS one", (environment.ids.new(),)), Scope()
    part = _item(from_.this, environment, lower_query)
    for join in select.args.get("joins") or ():
        part = _join(part, join, environment, lower_query)
    return lateral_views(select, part, environment)


def _item(tree: exp.Expression, environment: Environment, lower_query: LowerQuery) -> Part:
    if tree.args.get("pivots"):
        raise UnsupportedSQL("UNPIVOT" if tree.args["pivots"][0].args.get("unpivot") else "PIVOT")
    if isinstance(tree, exp.Subquery):
        part = _subquery(tree, environment, lower_query)
    elif isinstance(tree, exp.Values):
        part = _aliased(_constant(tree, environment), tree)
    elif isinstance(tree, exp.Table) and isinstance(tree.this, exp.Identifier):
        part = _table(tree, environment, lower_query)
    elif isinstance(tree, exp.Table):
        part = _aliased(_constant(tree, environment), tree)
    else:
        raise UnsupportedSQL(f"{type(tree).__name__.upper()} in FROM")
    for join in tree.args.get("joins") or ():
        part = _join(part, join, environment, lower_query)
    if tree.args.get("laterals"):
        raise UnsupportedSQL("LATERAL VIEW of a relation in parentheses")
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
    if isinstance(tree.this, exp.Table | exp.Subquery):
        node, scope = _item(tree.this, environment, lower_query)
        if not tree.args.get("alias"):
            return node, scope
        return _aliased(Block(node, scope.visible), tree)
    if tree.args.get("order") or tree.args.get("limit"):
        raise UnsupportedSQL("ORDER BY after a parenthesis")
    return _aliased(lower_query(tree.this, environment), tree)


def _constant(tree: exp.Expression, environment: Environment) -> Block:
    """VALUES, and functions that make a table."""
    item = tree.copy()
    for clause in ("alias", "joins", "laterals"):
        item.set(clause, None)
    query = exp.select("*").from_(item)
    text, keys = environment.text(query)
    if keys:
        raise UnsupportedSQL("a table function over a relation")
    schema = environment.shape(query)
    columns = tuple(Named(name, environment.ids.new()) for name in schema.names)
    environment.types.update(zip((c.id for c in columns), (c.type for c in schema), strict=True))
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
        return lateral_join(left, join, environment)
    right = _item(join.this, environment, lower_query)
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    names = [column.name for column in join.args.get("using") or ()]
    if str(join.args.get("method") or "").upper() == "NATURAL":
        theirs = {column.name.lower() for column in right[1].visible}
        names = [column.name for column in left[1].visible if column.name.lower() in theirs]
    if names:
        pairs = _using(left[1], right[1], names)
        on = tuple(Expr(f"{a} = {b}") for a, b in pairs)
        node, _ = _joined(left, right, side, kind, on)
        return _merged(node, left[1], right[1], names, pairs, kind or side, environment)
    return _joined(left, right, side, kind, _on(join, left[1] + right[1]))


def _on(join: exp.Join, scope: Scope) -> tuple[Expr, ...]:
    on = join.args.get("on")
    return Expr.of(resolve(on, in_scope(scope), scope)).conjuncts() if on is not None else ()


def _using(left: Scope, right: Scope, names: list[str]) -> list[tuple[str, str]]:
    pairs = []
    for name in names:
        a, b = left.find((name,)), right.find((name,))
        if a is None or b is None:
            raise UnsupportedSQL(f"USING column {name} cannot be resolved", "Both sides must have it.")
        pairs.append((a[0], b[0]))
    return pairs


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
    node: Node,
    left: Scope,
    right: Scope,
    names: list[str],
    pairs: list[tuple[str, str]],
    how: str,
    environment: Environment,
) -> Part:
    """USING: each of the columns once, in front; its value is of the side that always has one."""
    using = {name.lower() for name in names}
    a_keys, b_keys = [a for a, _ in pairs], [b for _, b in pairs]
    sources = tuple(source.keys_first(a_keys) for source in left.sources)
    rest = tuple(c for c in left.visible if c.name.lower() not in using)
    ids = {"RIGHT": b_keys, "FULL": [environment.ids.new() for _ in pairs]}.get(how, a_keys)
    merged = tuple(Named(name, id) for name, id in zip(names, ids, strict=True))
    if how in ("SEMI", "ANTI"):
        return node, Scope(sources, merged + rest)
    if how == "FULL":
        values = [Expr(f"coalesce({a}, {b})") for a, b in pairs]
        node = with_columns(node, list(zip(ids, values, strict=True)))
    sources += tuple(source.keys_first(b_keys) for source in right.sources)
    rest += tuple(c for c in right.visible if c.name.lower() not in using)
    return node, Scope(sources, merged + rest)


__all__ = ["LowerQuery", "Part", "lower_from"]
