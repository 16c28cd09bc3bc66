"""FROM: relations, derived tables and joins."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.aggregate import with_columns
from dbt_incremental_dd.frontend.block import (
    Block,
    Environment,
    LowerQuery,
    carrying,
    conjuncts,
    has_subquery,
    lowered,
)
from dbt_incremental_dd.frontend.decorrelate.dependent import Conditions, any_query
from dbt_incremental_dd.frontend.decorrelate.negation import has_not_in, is_in_query, without_not
from dbt_incremental_dd.frontend.generators import Part, from_so_far, has_generator, lateral_join, lateral_views
from dbt_incremental_dd.frontend.inline_table import inline_table
from dbt_incremental_dd.frontend.pivot import pivoted
from dbt_incremental_dd.frontend.reason import named
from dbt_incremental_dd.frontend.relations import relation_of
from dbt_incremental_dd.frontend.resolve import first_of, in_scope, resolve
from dbt_incremental_dd.frontend.scope import Named, Scope, Source
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Constant, Join, OuterJoin, SemiJoin
from dbt_incremental_dd.logical.now import uses_now


def lower_from(select: exp.Select, environment: Environment, lower_query: LowerQuery, conditions: Conditions) -> Part:
    """All of FROM with its joins and lateral views; without FROM, one row without columns that can be named."""
    from_ = select.args.get("from_")
    if from_ is None:
        return Constant.one_row(environment.ids.new()), Scope()
    clause = _From(environment, lower_query, conditions)
    part = clause.item(from_.this)
    for number, join in enumerate(select.args.get("joins") or ()):
        before = from_so_far(select, number) if isinstance(join.this, exp.Lateral) else None
        part = clause.join(part, join, before)
    return lateral_views(select, part, environment)


@dataclass(frozen=True)
class _From:
    """The items of one FROM."""

    environment: Environment
    lower_query: LowerQuery
    conditions: Conditions

    def item(self, tree: exp.Expr) -> Part:
        """A relation, whatever it is, with the joins that stand in the same parentheses."""
        if tree.args.get("pivots"):
            part = self._pivoted(tree)
        elif isinstance(tree, exp.Subquery):
            part = self._subquery(tree)
        elif isinstance(tree, exp.Values):
            block = inline_table(tree, self.environment) or _constant(tree, self.environment)
            part = _aliased(block, tree)
        elif isinstance(tree, exp.Table) and isinstance(tree.this, exp.Identifier):
            part = self._table(tree)
        elif isinstance(tree, exp.Table):
            part = _aliased(_constant(tree, self.environment), tree)
        else:
            raise UnsupportedSQL(f"{named(tree)} in FROM")
        for join in tree.args.get("joins") or ():
            part = self.join(part, join)
        if tree.args.get("laterals"):
            raise UnsupportedSQL("LATERAL VIEW of a relation in parentheses")
        return part

    def _pivoted(self, tree: exp.Expr) -> Part:
        """The item under its last PIVOT or UNPIVOT."""
        below, alone = tree.copy(), tree.copy()
        pivot = below.args["pivots"].pop()
        for clause in ("joins", "laterals"):
            below.set(clause, None)
            alone.set(clause, None)
        part = self.item(below)
        return pivoted(part, pivot, self.environment.shape(exp.select("*").from_(alone)), self.environment)

    def _table(self, tree: exp.Table) -> Part:
        if tree.args.get("version") or tree.args.get("when") or tree.args.get("sample"):
            raise UnsupportedSQL("a table's version or sample")
        cte = self.environment.ctes.get(tree.name.lower()) if len(tree.parts) == 1 else None
        if cte is not None:
            definition, outer = cte
            names = [column.name for column in definition.args["alias"].columns]
            block = lowered(definition.this, outer, self.lower_query, names=not names)
            columns = _renamed(block.columns, names)
            return _aliased(Block(block.plan, columns, block.carried), tree, default=(tree.name,))
        relation = relation_of(tree)
        if relation.key not in self.environment.inputs:
            raise UnsupportedSQL(f"it reads {relation.key}, which is not known", "Use ref() or source().")
        node, columns = self.environment.get(relation.key)
        return _aliased(Block(node, columns), tree, default=relation.parts)

    def _subquery(self, tree: exp.Subquery) -> Part:
        if isinstance(tree.this, exp.Table | exp.Subquery):
            node, scope = self.item(tree.this)
            if not tree.args.get("alias"):
                return node, scope
            return _aliased(Block(node, scope.visible, scope.carried), tree)
        if tree.args.get("order") or tree.args.get("limit"):
            raise UnsupportedSQL("ORDER BY after a parenthesis")
        alias = tree.args.get("alias")
        names = not (isinstance(alias, exp.TableAlias) and alias.columns)
        return _aliased(lowered(tree.this, self.environment, self.lower_query, names=names), tree)

    def join(self, left: Part, join: exp.Join, before: exp.Select | None = None) -> Part:
        """The next item, joined to what stands before it: ``before``, where that is a FROM of its own."""
        side, kind = _side_and_kind(join)
        if isinstance(join.this, exp.Lateral):
            if not isinstance(join.this.this, exp.Subquery):
                return lateral_join(left, join, before, self.environment)
            if side == "LEFT" and join.args.get("on") is None and has_generator(join.this):
                raise UnsupportedSQL("LEFT JOIN LATERAL of a generator without a condition", "Write ON true, or JOIN.")
            right, ties = self._lateral_query(left, join.this)
            left, right, on = self._on(join, left, right, side)
            return _joined(left, right, side, kind, (*ties, *on))
        right = self.item(join.this)
        names = [column.name for column in join.args.get("using") or ()]
        if str(join.args.get("method") or "").upper() == "NATURAL":
            theirs = {column.name.lower() for column in right[1].visible}
            names = [column.name for column in left[1].visible if column.name.lower() in theirs]
        left, ties = self._tied(left, right, side, kind)
        if names:
            pairs = _using(left[1], right[1], names)
            node, _ = _joined(left, right, side, kind, (*ties, *(Expr(f"{a} = {b}") for a, b in pairs)))
            return _merged(
                node, left[1], right[1], names=names, pairs=pairs, how=kind or side, environment=self.environment
            )
        inner = not side and kind in ("", "INNER", "CROSS")
        if inner and join.args.get("on") is not None and has_subquery(join.args["on"]):
            return self._inner(left, right, ties, join.args["on"])
        left, right, on = self._on(join, left, right, side)
        return _joined(left, right, side, kind, (*ties, *on))

    def _inner(self, left: Part, right: Part, ties: tuple[Expr, ...], on: exp.Expr) -> Part:
        """An inner join whose condition holds subqueries: a filter over it, but for what Spark pushes down."""
        kept = []
        for conjunct in sorted(conjuncts(on), key=has_subquery):
            if is_in_query(without_not(conjunct)[0]) or not has_not_in(conjunct):
                kept.append(conjunct)
                continue
            pushed = self._pushed_down(conjunct, left, right, "")
            if pushed is None:  # in a join's own condition, Spark's NOT IN ignores NULLs
                raise UnsupportedSQL("NOT IN over a subquery, beside columns of both sides, in ON", "Move it to WHERE.")
            left, right = pushed
        part = _joined(left, right, "", "", ties)
        for conjunct in kept:
            part = self._filtered(part, conjunct)
        return part

    def _pushed_down(self, conjunct: exp.Expr, left: Part, right: Part, side: str) -> tuple[Part, Part] | None:
        """Both sides of an inner (""), LEFT or RIGHT join, with the condition applied to the only one that it reads.
        None where it reads both, or the side whose rows are all kept."""
        if side != "LEFT":
            with suppress(UnsupportedSQL):
                return self._filtered(left, conjunct), right
        if side != "RIGHT":
            with suppress(UnsupportedSQL):
                return left, self._filtered(right, conjunct)
        return None

    def _on(self, join: exp.Join, left: Part, right: Part, side: str) -> tuple[Part, Part, tuple[Expr, ...]]:
        """The condition; names of the outside are found in what the left side carries of it."""
        found: list[Expr] = []
        for conjunct in conjuncts(join.args["on"]) if join.args.get("on") is not None else ():
            if has_subquery(conjunct):
                left, right, on = self._on_subquery(conjunct, left, right, side)
                found += on
                continue
            scope = left[1] + right[1]
            try:
                found += Expr.of(resolve(conjunct, in_scope(scope), scope)).conjuncts()
            except UnsupportedSQL:
                if self.environment.outer is None or side in ("RIGHT", "FULL"):
                    raise
                left = self._carrying(left)
                look = first_of(in_scope(scope), self.environment.outer.seen_as(left[1].carried))
                found += Expr.of(resolve(conjunct, look, scope)).conjuncts()
        return left, right, tuple(found)

    def _on_subquery(
        self, conjunct: exp.Expr, left: Part, right: Part, side: str
    ) -> tuple[Part, Part, tuple[Expr, ...]]:
        """A condition on the optional side alone decides which of its rows there are to match. In any other condition,
        each subquery becomes a column of the side that it reads."""
        pushed = self._pushed_down(conjunct, left, right, side) if side in ("LEFT", "RIGHT") else None
        if pushed is not None:
            return *pushed, ()
        if has_not_in(conjunct):  # Spark minds a NULL in the list only where it pushes the condition down
            raise UnsupportedSQL("NOT IN over a subquery in ON of an outer join", "Write NOT EXISTS.")
        scope = left[1] + right[1]
        tree, computed = self.conditions.as_columns(conjunct, scope, self.environment)
        for one in computed:
            values = tuple(Expr.of(value) for value in one.outer)
            refs = {ref for value in values for ref in value.refs}
            if refs <= set(right[0].columns):
                right = one.join(right[0], values), right[1]
            elif refs <= set(left[0].columns):
                left = one.join(left[0], values), left[1]
            else:
                raise UnsupportedSQL("a subquery that reads both sides in ON of an outer join")
        return left, right, tuple(Expr.of(resolve(tree, in_scope(scope), scope)).conjuncts())

    def _filtered(self, part: Part, predicate: exp.Expr) -> Part:
        return self.conditions.filtered(part[0], predicate, part[1], self.environment), part[1]

    def _lateral_query(self, left: Part, tree: exp.Lateral) -> tuple[Part, tuple[Expr, ...]]:
        """``LATERAL (SELECT ...)``: a query that is answered for each row of what stands before it."""
        node, scope = left
        query = tree.this.this
        tied = any_query(query, in_scope(scope), scope, self.environment.closed, self.lower_query, names=True).at(node)
        names = [column.name for column in tree.args["alias"].columns] if tree.args.get("alias") else []
        source = Source((tree.alias,) if tree.alias else (), _renamed(tied.columns, names))
        return (tied.right, Scope.of(source)), tied.on

    def _carrying(self, part: Part) -> Part:
        node, scope = part
        block = carrying(Block(node, scope.visible, scope.carried), self.environment)
        return block.plan, replace(scope, carried=block.carried)

    def _tied(self, left: Part, right: Part, side: str, kind: str) -> tuple[Part, tuple[Expr, ...]]:
        """The left side, and what ties it to the right one where both depend on values of the outside."""
        theirs, ours = right[1].carried, left[1].carried
        if side in ("RIGHT", "FULL") and (ours or theirs):
            raise UnsupportedSQL(f"a correlated query in a {side} JOIN")
        if not theirs or (not ours and not side and kind in ("", "INNER", "CROSS")):
            return left, ()
        left = self._carrying(left)
        return left, tuple(Expr(f"{a} <=> {b}") for a, b in zip(left[1].carried, theirs, strict=True))


def _constant(tree: exp.Expr, environment: Environment) -> Block:
    """VALUES, and functions that make a table."""
    item = tree.copy()
    for clause in ("alias", "joins", "laterals"):
        item.set(clause, None)
    query = exp.select("*").from_(item)
    text, keys = environment.text(query)
    if uses_now(text):
        raise UnsupportedSQL("dd_now() in VALUES or a table function", "Select it: (SELECT dd_now() AS t).")
    if keys:
        raise UnsupportedSQL("a table function over a relation")
    schema = environment.shape(query)
    columns = tuple(Named(name, environment.ids.new()) for name in schema.names)
    environment.types.update(zip((c.id for c in columns), (c.type for c in schema), strict=True))
    return Block(Constant(text.format(), tuple(column.id for column in columns)), columns)


def _aliased(block: Block, tree: exp.Expr, default: tuple[str, ...] = ()) -> Part:
    alias = tree.args.get("alias")
    names = [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
    qualifier = (tree.alias,) if tree.alias else default
    return block.plan, Scope.of(Source(qualifier, _renamed(block.columns, names)), block.carried)


def _renamed(columns: tuple[Named, ...], names: list[str]) -> tuple[Named, ...]:
    if not names:
        return columns
    return tuple(Named(name, column.id) for name, column in zip(names, columns, strict=True))


def _side_and_kind(join: exp.Join) -> tuple[str, str]:
    """LEFT, RIGHT, FULL or nothing; INNER, CROSS, SEMI, ANTI or nothing: OUTER says no more than the side does."""
    side, kind = (str(join.args.get(name) or "").upper() for name in ("side", "kind"))
    return side, "" if kind == "OUTER" else kind


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
        return node, Scope(sources, merged + rest, left.carried)
    if how == "FULL":
        values = [Expr(f"coalesce({a}, {b})") for a, b in pairs]
        node = with_columns(node, list(zip(ids, values, strict=True)))
    sources += tuple(source.keys_first(b_keys) for source in right.sources)
    rest += tuple(c for c in right.visible if c.name.lower() not in using)
    return node, Scope(sources, merged + rest, left.carried or right.carried)
