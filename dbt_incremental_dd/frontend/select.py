"""SELECT: FROM, WHERE, aggregation, windows, projection, DISTINCT, ORDER BY with LIMIT, as they follow each other."""

from __future__ import annotations

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.aggregate import find_aggregates, lower_aggregation
from dbt_incremental_dd.frontend.block import Block, Environment
from dbt_incremental_dd.frontend.from_clause import LowerQuery, lower_from
from dbt_incremental_dd.frontend.functions import GENERATORS
from dbt_incremental_dd.frontend.order import number, ordered_items
from dbt_incremental_dd.frontend.resolve import resolve
from dbt_incremental_dd.frontend.scope import Named, Scope
from dbt_incremental_dd.frontend.window import lower_windows
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Distinct, Filter, FlatMap, Map, Node, Order, TopK

_UNUSUAL = ("connect", "cluster", "distribute", "sort", "into", "match", "prewhere", "sample")


def lower_select(select: exp.Select, environment: Environment, lower_query: LowerQuery) -> Block:
    """The block of one SELECT. Raises UnsupportedSQL, naming the construct, where it has no plan."""
    for clause in _UNUSUAL:
        if select.args.get(clause) and clause not in ("cluster", "distribute", "sort"):
            raise UnsupportedSQL(clause.upper())
    if select.args.get("kind") or (
        isinstance(select.args.get("distinct"), exp.Distinct) and select.args["distinct"].args.get("on")
    ):
        raise UnsupportedSQL("SELECT of another kind")
    node, scope = lower_from(select, environment, lower_query)
    where = select.args.get("where")
    if where is not None:
        node = _filtered(node, Expr.of(resolve(where.this, scope)))
    return _Projection(select, environment, node, scope).lower()


def _filtered(node: Node, predicate: Expr) -> Node:
    for conjunct in predicate.conjuncts():
        node = Filter(node, conjunct)
    return node


class _Projection:
    """The clauses of a SELECT that follow WHERE; each step replaces the plan, and what was computed by column ids."""

    def __init__(self, select: exp.Select, environment: Environment, node: Node, scope: Scope) -> None:
        self._select = select
        self._environment = environment
        self._node = node
        self._scope = scope
        self._items: list[tuple[str, exp.Expression]] = []
        self._having: exp.Expression | None = None
        self._qualify: exp.Expression | None = None
        self._orders: list[tuple[exp.Ordered, exp.Expression]] = []

    def lower(self) -> Block:
        """All steps in order."""
        self._resolve()
        self._aggregate()
        if self._having is not None:
            self._node = _filtered(self._node, Expr.of(self._having))
        self._windows()
        if self._qualify is not None:
            self._node = _filtered(self._node, Expr.of(self._qualify))
        self._generators()
        return self._project()

    def _resolve(self) -> None:
        """Every clause over ids; aliases of the select list stand for what they name."""
        aliases: dict[str, exp.Expression] = {}
        for tree in self._select.expressions:
            for name, resolved in self._expanded(tree, aliases):
                self._items.append((name, resolved))
                if isinstance(tree, exp.Alias):
                    aliases[name.lower()] = resolved
        self._aliases = aliases
        having, qualify = self._select.args.get("having"), self._select.args.get("qualify")
        self._having = resolve(having.this, self._scope, aliases) if having is not None else None
        self._qualify = resolve(qualify.this, self._scope, aliases) if qualify is not None else None
        if number(self._select, "limit") is not None or number(self._select, "offset"):
            self._orders = [item for o in ordered_items(self._select) for item in self._order(o)]

    def _expanded(self, tree: exp.Expression, aliases: dict[str, exp.Expression]) -> list[tuple[str, exp.Expression]]:
        star = tree.this if isinstance(tree, exp.Column) else tree
        if isinstance(star, exp.Star):
            return self._star(tree, star)
        if isinstance(tree, exp.Aliases):
            raise UnsupportedSQL("a generator with several columns in the select list", "Use LATERAL VIEW.")
        value = tree.this if isinstance(tree, exp.Alias) else tree
        return [(tree.alias_or_name or value.sql(), resolve(value, self._scope, aliases))]

    def _star(self, tree: exp.Expression, star: exp.Star) -> list[tuple[str, exp.Expression]]:
        if star.args.get("replace") or star.args.get("rename"):
            raise UnsupportedSQL("* REPLACE or RENAME")
        qualifier = tuple(part.name for part in tree.parts[:-1]) if isinstance(tree, exp.Column) else ()
        columns = self._scope.star(qualifier)
        if columns is None:
            raise UnsupportedSQL(f"{'.'.join(qualifier)}.* over a struct", "Name its fields.")
        left_out = {item.name.lower() for item in star.args.get("except_") or ()}
        return [(c.name, exp.column(c.id)) for c in columns if c.name.lower() not in left_out]

    def _order(self, ordered: exp.Ordered) -> list[tuple[exp.Ordered, exp.Expression]]:
        """ORDER BY sees the select list's names first, then the input's."""
        target = ordered.this
        if isinstance(target, exp.Literal) and target.is_int:
            return [(ordered, self._items[int(target.this) - 1][1])]
        names = {name.lower(): value for name, value in reversed(self._items)}
        if isinstance(target, exp.Column) and len(target.parts) == 1:
            if target.name.lower() in names:
                return [(ordered, names[target.name.lower()])]
            if target.name.lower() == "all":
                return [(ordered, value) for _, value in self._items]
        return [(ordered, resolve(target, self._scope, self._aliases))]

    def _each(self, change) -> None:  # type: ignore[no-untyped-def]
        """Applies a rewriting to every clause that is still to come."""
        self._items = [(name, change(value)) for name, value in self._items]
        self._having = change(self._having) if self._having is not None else None
        self._qualify = change(self._qualify) if self._qualify is not None else None
        self._orders = [(ordered, change(value)) for ordered, value in self._orders]

    def _all(self) -> list[exp.Expression]:
        clauses = [value for _, value in self._items] + [value for _, value in self._orders]
        return clauses + [clause for clause in (self._having, self._qualify) if clause is not None]

    def _aggregate(self) -> None:
        group = self._select.args.get("group")
        calls = find_aggregates(self._all())
        if group is None and not calls and self._having is None:
            return
        made = lower_aggregation(
            self._node, group, calls, self._items, self._scope, self._aliases, self._environment.ids
        )
        self._node = made.node
        self._each(made.rewrite)

    def _windows(self) -> None:
        windows = {w.name.lower(): w for w in self._select.args.get("windows") or ()}
        self._node, rewrite = lower_windows(self._node, self._all(), windows, self._scope, self._environment.ids)
        self._each(rewrite)

    def _generators(self) -> None:
        """A generator of the select list is a FlatMap over what lies below it."""
        found = [i for i, (_, value) in enumerate(self._items) if _is_generator(value)]
        if len(found) > 1:
            raise UnsupportedSQL("several generators in one select list", "Use LATERAL VIEW.")
        for i in found:
            name, call = self._items[i]
            if str(call.this).lower() not in ("explode", "explode_outer"):
                raise UnsupportedSQL(f"{call.this} in the select list", "Use LATERAL VIEW.")
            id = self._environment.ids.new()
            outer = str(call.this).lower().endswith("_outer")
            self._node = FlatMap(self._node, Expr.of(call), outer, (id,))
            self._items[i] = (name, exp.column(id))
        if any(_is_generator(call) for value in self._all() for call in value.find_all(exp.Anonymous)):
            raise UnsupportedSQL("a generator inside an expression", "Use LATERAL VIEW.")

    def _project(self) -> Block:
        ids = self._environment.ids
        outputs = [(ids.new(), Expr.of(value)) for _, value in self._items]
        columns = tuple(Named(name, id) for (name, _), (id, _) in zip(self._items, outputs, strict=True))
        distinct = self._select.args.get("distinct") is not None
        hidden = [] if distinct else [(ids.new(), Expr.of(value)) for _, value in self._orders]
        node: Node = Map(self._node, (*outputs, *hidden))
        node = Distinct(node) if distinct else node
        limit, offset = number(self._select, "limit"), number(self._select, "offset") or 0
        if limit is None and not offset:
            return Block(node, columns)
        keys = [id for id, _ in hidden] if not distinct else self._among(outputs)
        order = tuple(
            Order(Expr.column(id), bool(o.args.get("desc")), bool(o.args.get("nulls_first")))
            for id, (o, _) in zip(keys, self._orders, strict=True)
        )
        top: Node = TopK(node, (), order, limit, offset)
        return Block(Map(top, tuple((id, Expr.column(id)) for id, _ in outputs)) if hidden else top, columns)

    def _among(self, outputs: list[tuple[str, Expr]]) -> list[str]:
        """With DISTINCT, what is ordered by must be among what is selected."""
        by_sql = {expr.sql: id for id, expr in outputs}
        found = [by_sql.get(Expr.of(value).sql) for _, value in self._orders]
        if None in found:
            raise UnsupportedSQL("ORDER BY of what SELECT DISTINCT leaves out")
        return [str(id) for id in found]


def _is_generator(value: exp.Expression) -> bool:
    return isinstance(value, exp.Anonymous) and str(value.this).lower() in GENERATORS
