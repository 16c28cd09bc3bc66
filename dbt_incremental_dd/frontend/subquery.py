"""Subqueries: EXISTS and IN as semi and anti joins, or as one more column; a scalar as one more column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.aggregate import itself, with_columns
from dbt_incremental_dd.frontend.block import Environment, LowerQuery, NoAnalysis, conjuncts, has_subquery
from dbt_incremental_dd.frontend.decorrelate.dependent import (
    Computed,
    Conditions,
    Dependent,
    Tied,
    any_query,
    dependent,
)
from dbt_incremental_dd.frontend.decorrelate.domain import distinct_values
from dbt_incremental_dd.frontend.decorrelate.negation import is_in_query, negations_pushed, without_not
from dbt_incremental_dd.frontend.decorrelate.simple import SimpleSubqueries, is_one_row, unwrapped
from dbt_incremental_dd.frontend.from_clause import lower_from
from dbt_incremental_dd.frontend.resolve import Lookup, in_scope, resolve, resolved_column
from dbt_incremental_dd.frontend.scope import Named, Scope
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Aggregate, Distinct, Filter, Join, Map, OuterJoin, Reduce, SemiJoin


class Subqueries:
    """Lowers the subqueries of one SELECT, whose FROM is ``scope``; ``look`` finds all names that they see there."""

    def __init__(self, look: Lookup, scope: Scope, environment: Environment, lower_query: LowerQuery) -> None:
        self._look = look
        self._scope = scope
        self._environment = environment.closed
        self._ids = environment.ids
        self._lower_query = lower_query
        self._simple = SimpleSubqueries(look, self._environment, self._from, conditions_by(lower_query))

    def _from(self, select: exp.Select, environment: Environment) -> tuple[Node, Scope]:
        return lower_from(select, environment, self._lower_query, conditions_by(self._lower_query))

    def filtered(self, node: Node, predicate: exp.Expr) -> Node:
        """The rows for which a WHERE clause is true. Conjuncts with subqueries come after all others, as in Spark."""
        for conjunct in sorted(conjuncts(predicate), key=has_subquery):
            node = self._conjunct(node, conjunct)
        return node

    def _conjunct(self, node: Node, conjunct: exp.Expr) -> Node:
        inner, negated = without_not(conjunct)
        if isinstance(inner, exp.Exists):
            tied = self._exists(inner.this).at(node)
            return SemiJoin(negated, node, tied.right, tied.on)
        if is_in_query(inner):
            matches = self._matches(inner, negated=negated)
            for tied in matches.tied(node, tuple(Expr.of(tree) for tree in matches.outer)):
                node = SemiJoin(negated, node, tied.right, tied.on)
            return node
        tree, computed = self.as_columns(conjunct)
        filter = resolve(tree, self._look, self._scope)
        if not computed:
            return Filter(node, Expr.of(filter))
        made = {one.id for one in computed}
        refs = {ref for value in (filter, *(o for c in computed for o in c.outer)) for ref in Expr.of(value).refs}
        return _at_operand(node, refs - made, lambda below: self._kept(below, Expr.of(filter), computed))

    def _kept(self, node: Node, predicate: Expr, computed: Sequence[Computed]) -> Node:
        """The rows for which a predicate over subqueries' columns is true, without these columns."""
        columns = node.columns
        for one in computed:
            node = one.join(node, tuple(Expr.of(outer) for outer in one.outer))
        return Map(Filter(node, predicate), tuple((id, Expr.column(id)) for id in columns))

    def as_columns(self, tree: exp.Expr) -> tuple[exp.Expr, list[Computed]]:
        """A copy of the tree with its subqueries as columns, and what makes these columns."""
        holder = exp.Tuple(expressions=[negations_pushed(tree.copy())])
        made: list[Computed] = []
        found: exp.Expr
        for found in [s for s in holder.find_all(exp.Subquery, exp.Exists, exp.In) if not s.find_ancestor(exp.Query)]:
            if isinstance(found, exp.Exists):
                made.append(self._marked_exists(found))
            elif is_in_query(found):
                around = found.parent
                made.append(self._marked_in(found, negated=isinstance(around, exp.Not)))
                found = around if isinstance(around, exp.Not) else found
            elif isinstance(found, exp.Subquery) and not _is_list(found):
                made.append(self._scalar(unwrapped(found)))
            else:
                continue
            found.replace(resolved_column(made[-1].id))
        return holder.expressions[0], made

    def _exists(self, query: exp.Expr) -> Dependent:
        return self._simple.rows(unwrapped(query)) or self._any(query)

    def _any(self, query: exp.Expr) -> Dependent:
        return any_query(query, self._look, self._scope, self._environment, self._lower_query, names=False)

    def _matches(self, tree: exp.In, *, negated: bool) -> _Matches:
        """For ``x IN (...)`` the rows that match. For NOT IN also those for which a NULL makes the answer unknown."""
        if _is_null(tree.this):  # NULL even if the list is empty, in sessions that are not in ANSI mode
            raise UnsupportedSQL("NULL IN a subquery")
        sides = tree.this.expressions if isinstance(tree.this, exp.Tuple) else [tree.this]
        values = tuple(resolve(side, self._look, self._scope) for side in sides)
        query = unwrapped(tree.args["query"])
        found = self._simple.listed(query) or self._any(query)
        several = len(sides) > 1

        def tied(node: Node, outer: tuple[Expr, ...]) -> list[Tied]:
            right = found.tie(node, outer[len(values) :])
            if len(right.columns) != len(values):
                raise UnsupportedSQL("IN over different numbers of columns")
            pairs = zip(outer, right.columns, strict=False)
            equal = tuple(Expr(f"({value.sql}) = {column.id}") for value, column in pairs)
            if negated and several:
                equal = tuple(Expr(f"coalesce({predicate.sql}, true)") for predicate in equal)
            matched = Tied(right.right, right.columns, (*equal, *right.on))
            return [matched, self._unknown(outer[0], right)] if negated and not several else [matched]

        return _Matches((*values, *found.outer), tied)

    def _unknown(self, value: Expr, right: Tied) -> Tied:
        """Ties rows to a list that is not empty where the value or one of the list is NULL."""
        is_null, column = self._ids.new(), right.columns[0].id
        needed = sorted({ref for predicate in right.on for ref in predicate.refs} & set(right.right.columns))
        fresh = {id: self._ids.new() for id in needed}
        outputs = [(fresh[id], Expr.column(id)) for id in needed] + [(is_null, Expr(f"{column} IS NULL"))]
        kinds = Distinct(Map(right.right, tuple(outputs)))
        renames = {id: Expr.column(new) for id, new in fresh.items()}
        unknown = Expr(f"{is_null} OR ({value.sql}) IS NULL")
        return Tied(kinds, (), (unknown, *(predicate.substitute(renames) for predicate in right.on)))

    def _marked_exists(self, tree: exp.Exists) -> Computed:
        found, id = self._exists(tree.this), self._ids.new()
        return Computed(
            id, found.outer, lambda node, outer: self._marked(node, id, [found.tie(node, outer)], negated=False)
        )

    def _marked_in(self, tree: exp.In, *, negated: bool) -> Computed:
        """IN and NOT IN inside an expression; Spark takes what is unknown for false in either of them."""
        matches, id = self._matches(tree, negated=negated), self._ids.new()
        return Computed(
            id, matches.outer, lambda node, outer: self._marked(node, id, matches.tied(node, outer), negated=negated)
        )

    def _marked(self, node: Node, id: Id, ties: Sequence[Tied], *, negated: bool) -> Node:
        """The plan with a column that says whether a row is tied to anything; ``negated``, whether to nothing."""
        columns = node.columns
        marks = []
        for tied in ties:
            node, mark = self._mark(node, columns, tied)
            marks.append(f"NOT ({mark})" if negated else mark)
        kept = tuple((column, Expr.column(column)) for column in columns)
        return Map(node, (*kept, (id, Expr(" AND ".join(marks)))))

    def _mark(self, node: Node, columns: tuple[Id, ...], tied: Tied) -> tuple[Node, str]:
        """The plan with what tells rows that are tied, decided once for each of the values that it depends on."""
        refs = sorted({ref for predicate in tied.on for ref in predicate.refs} & set(columns))
        mark = self._ids.new()
        if not refs:
            right: Node = tied.right
            for predicate in tied.on:
                right = Filter(right, predicate)
            count = Aggregate(mark, Expr("count(*)"), "count", ())
            return Join((node, Reduce(right, (), (count,), global_row=True)), ()), f"{mark} > 0"
        fresh = {ref: self._ids.new() for ref in refs}
        domain = distinct_values(node, tuple((new, Expr.column(ref)) for ref, new in fresh.items()))
        renames = {ref: Expr.column(new) for ref, new in fresh.items()}
        kept = SemiJoin(False, domain, tied.right, tuple(predicate.substitute(renames) for predicate in tied.on))
        on = tuple(Expr(f"{ref} <=> {new}") for ref, new in fresh.items())
        return OuterJoin("left", node, with_columns(kept, [(mark, Expr("true"))]), on), f"{mark} IS NOT NULL"

    def _scalar(self, query: exp.Expr) -> Computed:
        try:
            block = self._lower_query(query, self._environment, names=False)
        except NoAnalysis:
            found = self._simple.aggregate(query)
            if found is None:
                raise
            return found
        except UnsupportedSQL:
            return self._simple.aggregate(query) or self._dependent_scalar(query)
        id = self._ids.new()
        plan: Node = Map(block.plan, ((id, Expr.column(_one(block.columns))),))
        if not is_one_row(query, exactly=True):
            plan, id = self._at_most_one(plan, (), id)
        return Computed(id, (), lambda node, outer: Join((node, plan), ()))

    def _dependent_scalar(self, query: exp.Expr) -> Computed:
        found = dependent(query, self._look, self._scope, self._environment, self._lower_query)
        id = self._ids.new()

        def join(node: Node, outer: tuple[Expr, ...]) -> Node:
            tied = found.tie(node, outer)
            right, column = tied.right, _one(tied.columns)
            if not is_one_row(query):
                keys = tuple(key for key in right.columns if key != column)
                right, column = self._at_most_one(right, keys, column)
            return Map(OuterJoin("left", node, right, tied.on), (*itself(node), (id, Expr.column(column))))

        return Computed(id, found.outer, join)

    def _at_most_one(self, right: Node, keys: tuple[Id, ...], column: Id) -> tuple[Node, Id]:
        """The one value of each group; more than one is an error, as in Spark."""
        value, count, id = self._ids.new(), self._ids.new(), self._ids.new()
        first = Aggregate(value, Expr(f"first({column})"), "first", (Expr.column(column),))
        reduce = Reduce(right, keys, (first, Aggregate(count, Expr("count(*)"), "count", ())), global_row=not keys)
        checked = Expr(f"CASE WHEN {count} > 1 THEN raise_error('{_TOO_MANY}') ELSE {value} END")
        return Map(reduce, (*((key, Expr.column(key)) for key in keys), (id, checked))), id


def _at_operand(node: Node, refs: set[Id], change: Callable[[Node], Node]) -> Node:
    """The plan changed at the one operand of inner joins that all of these columns come from, else as a whole.

    Several operands may be tied together only by others, so what concerns several is not moved to a join of these.
    """
    return (_below(node, refs, change, joined=False) if refs else None) or change(node)


def _below(node: Node, refs: set[Id], change: Callable[[Node], Node], *, joined: bool) -> Node | None:
    """The plan changed at the operand that has the columns; None where there is none, or no join above it."""
    if not isinstance(node, Filter | Join | SemiJoin | OuterJoin):
        return change(node) if joined else None
    candidates = node.inputs if isinstance(node, Filter | Join) else node.inputs[:1]
    if isinstance(node, OuterJoin) and node.kind == "full":
        candidates = ()
    found = next((i for i, below in enumerate(candidates) if refs <= set(below.columns)), None)
    if found is None:
        return None
    changed = _below(candidates[found], refs, change, joined=joined or isinstance(node, Join))
    if changed is None:
        return None
    return node.with_inputs((*node.inputs[:found], changed, *node.inputs[found + 1 :]))


def conditions_by(lower_query: LowerQuery) -> Conditions:
    """Conditions that may hold subqueries, for FROM."""

    def over(scope: Scope, environment: Environment) -> Subqueries:
        return Subqueries(in_scope(scope), scope, environment, lower_query)

    return Conditions(
        lambda node, predicate, scope, environment: over(scope, environment).filtered(node, predicate),
        lambda tree, scope, environment: over(scope, environment).as_columns(tree),
    )


@dataclass(frozen=True)
class _Matches:
    """What an IN list's rows are tied to: ``tied`` for a plan in which ``outer`` have these values."""

    outer: tuple[exp.Expr, ...]
    tied: Callable[[Node, tuple[Expr, ...]], list[Tied]]


_TOO_MANY = "More than one row returned by a subquery used as an expression"


def _one(columns: tuple[Named, ...]) -> Id:
    if len(columns) != 1:
        raise UnsupportedSQL("a scalar subquery of several columns")
    return columns[0].id


def _is_null(tree: exp.Expr) -> bool:
    """Whether it is NULL, in parentheses or of some type."""
    while isinstance(tree, exp.Paren | exp.Cast):
        tree = tree.this
    return isinstance(tree, exp.Null)


def _is_list(tree: exp.Subquery) -> bool:
    """Whether it is what IN or EXISTS looks into, not a value."""
    return isinstance(tree.parent, exp.Exists) or (isinstance(tree.parent, exp.In) and tree.arg_key == "query")
