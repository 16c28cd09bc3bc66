"""SELECT: FROM, WHERE, aggregation, windows, projection, DISTINCT, ORDER BY with LIMIT, as they follow each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.types import INTEGER, STRING
from dbt_incremental_dd.frontend.aggregate import (
    Aggregation,
    aggregated_for_each,
    aggregation,
    find_aggregates,
    form,
    key_columns,
    replaced,
)
from dbt_incremental_dd.frontend.block import Block, Environment, LowerQuery, carrying
from dbt_incremental_dd.frontend.decorrelate.dependent import Computed
from dbt_incremental_dd.frontend.from_clause import lower_from
from dbt_incremental_dd.frontend.generators import flat_map, names_in_select
from dbt_incremental_dd.frontend.group_by import Grouping, keys_with_subqueries, lower_aggregation
from dbt_incremental_dd.frontend.order import Key, is_limited, keys_of, top
from dbt_incremental_dd.frontend.resolve import (
    Found,
    Lookup,
    first_of,
    in_aliases,
    in_scope,
    resolve,
    resolved_column,
)
from dbt_incremental_dd.frontend.scope import Named, Scope
from dbt_incremental_dd.frontend.select_list import Item, SelectList
from dbt_incremental_dd.frontend.subquery import Subqueries, conditions_by
from dbt_incremental_dd.frontend.time_window import named, refuse_time_windows, with_time_windows
from dbt_incremental_dd.frontend.window import lower_windows, with_windows_written_out
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Distinct, Filter, Map

_UNUSUAL = ("connect", "into", "match", "prewhere", "kind", "operation_modifiers")


def lower_select(select: exp.Select, environment: Environment, lower_query: LowerQuery) -> Block:
    """The block of one SELECT. Raises UnsupportedSQL, naming the construct, where it has no plan."""
    for clause in _UNUSUAL:
        if select.args.get(clause):
            raise UnsupportedSQL(f"SELECT with {clause.upper()}")
    node, scope = lower_from(select, environment, lower_query, conditions_by(lower_query))
    if scope.carried and environment.outer is None:
        raise UnsupportedSQL("correlated subquery")
    whole = carrying(Block(node, scope.visible, scope.carried), environment)
    node, scope = whole.plan, replace(scope, carried=whole.carried)
    look = in_scope(scope)
    if environment.outer is not None:
        look = first_of(look, environment.outer.seen_as(scope.carried))
    subqueries = Subqueries(look, scope, environment, lower_query)
    where = select.args.get("where")
    if where is not None:
        refuse_time_windows([where], "WHERE")
        node = subqueries.filtered(node, where.this)
    return _Projection(
        with_windows_written_out(select), select, environment, node=node, scope=scope, look=look, subqueries=subqueries
    ).lower()


class _Projection:
    """The clauses of a SELECT that follow WHERE; each step replaces the plan, and what was computed by column ids."""

    def __init__(
        self,
        select: exp.Select,
        written: exp.Select,
        environment: Environment,
        node: Node,
        scope: Scope,
        look: Lookup,
        subqueries: Subqueries,
    ) -> None:
        self._select = select
        self._written = written
        self._environment = environment
        self._node = node
        self._scope = scope
        self._subqueries = subqueries
        self._look = look
        self._carried = scope.carried
        self._computed: list[Computed] = []
        self._known: dict[exp.Expr, exp.Expr] = {}
        self._having: exp.Expr | None = None
        self._qualify: exp.Expr | None = None
        self._orders: list[Key] = []
        self._generator: exp.Expr | None = None
        self._generated: tuple[Id, ...] = ()

    def lower(self) -> Block:
        """All steps in order."""
        self._resolve()
        self._add_time_windows()
        if self._grouping.is_given or self._having is not None or find_aggregates(self._all()):
            self._aggregate()
        else:
            self._join_computed(self._computed)
        if self._having is not None:
            self._node = _filtered(self._node, Expr.of(self._having))
        self._node, rewrite = lower_windows(self._node, self._all(), self._environment.ids, self._carried)
        self._each(rewrite)
        if self._qualify is not None:
            self._node = _filtered(self._node, Expr.of(self._qualify))
        self._generate()
        return self._project()

    def _resolve(self) -> None:
        """Every clause over ids; aliases of the select list stand for what they name."""
        inputs = first_of(self._look, named(self._select.args.get("group"), self._look))
        environment = self._environment
        for key in keys_with_subqueries(self._select.args.get("group")):
            self._known[key] = resolve(self._without_subqueries(key), inputs, self._scope)
        made = SelectList(self._scope, inputs, environment.ids, environment.types, self._without_subqueries)
        made.read(self._select.expressions, lambda at, others: self._generator_names(at, others))
        self._items, self._generator, self._generated = made.items, made.generator, made.generated
        aliases = in_aliases(made.aliases)
        self._grouping = Grouping(
            self._select.args.get("group"),
            [(i.name, i.value) for i in self._items],
            first_of(inputs, aliases),
            self._without_subqueries,
        )
        having, qualify = self._select.args.get("having"), self._select.args.get("qualify")
        if having is not None:
            tree = self._without_subqueries(_as_boolean(having.this))
            self._having = _resolved_outside_aggregates(
                tree, inputs, self._grouping.in_having(inputs, aliases), self._scope
            )
        if qualify is not None:
            self._qualify = resolve(
                self._without_subqueries(_as_boolean(qualify.this)), first_of(inputs, aliases), self._scope
            )
        self._is_distinct = self._select.args.get("distinct") is not None
        self._is_limited = is_limited(self._select)
        if self._is_limited and not self._is_distinct:
            values = [item.value for item in self._items]
            self._orders = keys_of(self._select, values, self._in_order(inputs))

    def _generator_names(self, at: int, others: int) -> tuple[str, ...]:
        return names_in_select(self._written, at, others, self._environment)

    def _without_subqueries(self, tree: exp.Expr) -> exp.Expr:
        """The tree with columns for its subqueries. A part that is written like a group key is that key."""
        holder = exp.Tuple(expressions=[tree.copy()])
        for key, value in self._known.items():
            for part in [part for part in holder.find_all(type(key)) if part == key]:
                part.replace(value.copy())
        tree, computed = self._subqueries.as_columns(holder.expressions[0])
        self._computed += computed
        return tree

    def _in_order(self, inputs: Lookup) -> Lookup:
        """ORDER BY sees the select list's names first, then the input's; a qualified name is the input's first."""

        def outputs(parts: tuple[str, ...]) -> Found | None:
            values = {form(item.value): item.value for item in self._items if item.name.lower() == parts[0].lower()}
            if len(values) > 1:
                raise UnsupportedSQL(f"ORDER BY {parts[0]} is ambiguous", "Give the columns different aliases.")
            return in_aliases({parts[0].lower(): next(iter(values.values()))})(parts) if values else None

        return lambda parts: first_of(*((inputs, outputs) if len(parts) > 1 else (outputs, inputs)))(parts)

    def _add_time_windows(self) -> None:
        refuse_time_windows((tree for _, tree in self._orders), "ORDER BY")
        keys = () if self._grouping.sets is not None else self._grouping.keys
        self._node, rewrite = with_time_windows(self._node, self._all(), keys, self._carried, self._environment.ids)
        self._grouping.change(rewrite)
        self._each(rewrite)

    def _each(self, change: Callable[[exp.Expr], exp.Expr]) -> None:
        """Applies a rewriting to every clause that is still to come."""
        self._items = [Item(item.name, change(item.value)) for item in self._items]
        self._having = change(self._having) if self._having is not None else None
        self._qualify = change(self._qualify) if self._qualify is not None else None
        self._orders = [(ordered, change(value)) for ordered, value in self._orders]
        self._generator = change(self._generator) if self._generator is not None else None
        self._computed = [replace(c, outer=tuple(change(tree) for tree in c.outer)) for c in self._computed]

    def _all(self) -> list[exp.Expr]:
        clauses = [item.value for item in self._items] + [value for _, value in self._orders]
        clauses += [c for c in (self._having, self._qualify, self._generator) if c is not None]
        return clauses + [tree for computed in self._computed for tree in computed.outer]

    def _aggregate(self) -> None:
        """Subqueries inside aggregates and keys are joined below the Reduce, the others above it."""
        below = self._joined_below()
        self._join_computed([one for one in self._computed if one.id in below])
        self._computed = [one for one in self._computed if one.id not in below]
        calls = find_aggregates(self._all())
        made = self._reduced(calls)
        self._node = made.node
        self._carried = tuple(made.known_id(resolved_column(id)) for id in self._carried)
        allowed = {one.id for one in self._computed} | set(self._generated)
        self._each(lambda tree: made.rewrite(tree, allowed))
        self._join_computed(self._computed)

    def _joined_below(self) -> frozenset[Id]:
        """The subqueries that aggregates and keys read."""
        inside = (*find_aggregates(self._all()), *self._grouping.keys)
        return frozenset(ref for tree in inside for ref in Expr.of(tree).refs)

    def _reduced(self, calls: list[exp.Expr]) -> Aggregation:
        environment, carried = self._environment, self._carried
        if environment.outer is None:
            return lower_aggregation(self._node, self._grouping, calls, environment.ids)
        if self._grouping.sets is not None:
            raise UnsupportedSQL("grouping sets in a correlated subquery")
        if self._grouping.keys or self._grouping.all:
            keys = (*(resolved_column(id) for id in carried), *self._grouping.keys)
            node, known = key_columns(self._node, keys, environment.ids)
            return aggregation(node, known, calls, global_row=False, ids=environment.ids)
        domain, keys_ = environment.outer.fresh(environment.ids)
        return aggregated_for_each(domain, keys_, self._node, carried=carried, calls=calls, ids=environment.ids)

    def _join_computed(self, computed: list[Computed]) -> None:
        for one in computed:
            if any(tree.find(exp.Window) for tree in one.outer):
                raise UnsupportedSQL("IN with a window function on its left")
            self._node = one.join(self._node, tuple(Expr.of(tree) for tree in one.outer))

    def _generate(self) -> None:
        """A generator of the select list is a FlatMap over what lies below it."""
        if self._generator is not None:
            self._node = flat_map(self._node, self._generator, outer=False, outputs=self._generated)

    def _project(self) -> Block:
        ids = self._environment.ids
        outputs = [(ids.new(), Expr.of(item.value)) for item in self._items]
        columns = tuple(Named(item.name, id) for item, (id, _) in zip(self._items, outputs, strict=True))
        self._note_types(outputs)
        hidden = [(ids.new(), Expr.of(value)) for _, value in self._orders]
        carried = tuple((id, Expr.column(id)) for id in self._carried)
        node: Node = Map(self._node, (*carried, *outputs, *hidden))
        if self._is_distinct:
            node = Distinct(node)
        if not self._is_limited:
            return Block(node, columns, self._carried)
        if self._is_distinct:
            keys = self._ordered_distinct(columns, outputs)
        else:
            keys = [(item, resolved_column(id)) for (item, _), (id, _) in zip(self._orders, hidden, strict=True)]
        limited = top(self._select, node, keys, self._carried)
        return Block(limited, columns, self._carried)

    def _ordered_distinct(self, columns: tuple[Named, ...], outputs: list[tuple[Id, Expr]]) -> list[Key]:
        """With DISTINCT, ORDER BY is over what is selected, by its name or by what it was computed from."""
        known = {form(item.value): id for item, (id, _) in zip(self._items, outputs, strict=True)}
        by_name = {column.name.lower(): resolved_column(column.id) for column in columns}
        look = first_of(in_aliases(by_name), self._look)
        keys = keys_of(self._select, [resolved_column(column.id) for column in columns], look)
        keys = [(item, replaced(value, known)) for item, value in keys]
        if any(not Expr.of(value).refs <= {column.id for column in columns} for _, value in keys):
            raise UnsupportedSQL("ORDER BY of what SELECT DISTINCT leaves out")
        return keys

    def _note_types(self, outputs: list[tuple[Id, Expr]]) -> None:
        types = self._environment.types
        for id, expr in outputs:
            if expr.as_column in types:
                types[id] = types[str(expr.as_column)]
            elif isinstance(expr.tree, exp.Literal) and (expr.tree.is_string or _is_small(expr.tree)):
                types[id] = STRING if expr.tree.is_string else INTEGER


def _is_small(literal: exp.Literal) -> bool:
    return literal.is_int and int(literal.this) < 2**31


def _as_boolean(tree: exp.Expr) -> exp.Expr:
    """HAVING and QUALIFY of a value that is no predicate: Spark casts it there, and nowhere else."""
    if isinstance(tree.unnest(), exp.Predicate | exp.Connector | exp.Not | exp.Boolean):
        return tree
    return exp.Cast(this=exp.paren(tree.copy()), to=exp.DataType.build("boolean"))


def _filtered(node: Node, predicate: Expr) -> Node:
    for conjunct in predicate.conjuncts():
        node = Filter(node, conjunct)
    return node


def _resolved_outside_aggregates(tree: exp.Expr, inputs: Lookup, outside: Lookup, scope: Scope) -> exp.Expr:
    """HAVING: an aggregate's argument is over the input, everything else over the groups."""
    holder = exp.Tuple(expressions=[tree.copy()])
    for call in find_aggregates([holder]):
        call.replace(resolve(call, inputs, scope))
    return resolve(holder.expressions[0], outside, scope)
