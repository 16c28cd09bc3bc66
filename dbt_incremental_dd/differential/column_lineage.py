"""Which columns of its inputs each column of a model is made of.

Ids are unique in a plan, so a column that has the id of an input's column is that column. What makes other columns is
said here for each operator; of one that is not known here, they are made of all that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from dbt_incremental_dd.differential.groups import Recompute, RecomputeGroups, TopGroups, WindowGroups
from dbt_incremental_dd.differential.iterate import Iterate
from dbt_incremental_dd.differential.join import DeltaJoin
from dbt_incremental_dd.differential.lower import DifferentialPlan
from dbt_incremental_dd.differential.outer_join import LeftLinearJoin
from dbt_incremental_dd.differential.reduce import Accumulate
from dbt_incremental_dd.differential.top import KeptTop
from dbt_incremental_dd.logical.expr import Expr, references
from dbt_incremental_dd.logical.graph import each_once
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Filter, FlatMap, Get, Map, Union

How = Literal["identity", "transformation", "aggregation", "window", "filter", "join", "group_by", "sort"]
"""The first three: the value is the column's, or is made of it. ``window``: partition and order choose the rows that it
is a value of. The others: whether, or how often, a row is there."""
_DIRECT: tuple[How, ...] = ("identity", "transformation", "aggregation")


@dataclass(frozen=True, order=True)
class InputColumn:
    """A column of an input, and how it takes part. ``collection``: the input's name."""

    collection: str
    column: str
    how: How


Columns = frozenset[InputColumn]


@dataclass(frozen=True)
class ColumnLineage:
    """``columns``: by the output's names, what values are made of. ``rows``: what decides which rows there are."""

    columns: Mapping[str, Columns]
    rows: Columns


def column_lineage(plan: DifferentialPlan) -> ColumnLineage:
    """The lineage of a model's columns."""
    made: dict[int, Mapping[Id, Columns]] = {}
    everything: dict[int, Columns] = {}
    rows: set[InputColumn] = set()
    for node in each_once(plan.root):
        given = {id: of for child in node.inputs for id, of in made[_key(child)].items()}
        everything[_key(node)] = frozenset().union(*(everything[_key(child)] for child in node.inputs), *_own(node))
        own = _made(node, given)
        unknown = _as(everything[_key(node)], "transformation")
        made[_key(node)] = {id: own.get(id, given.get(id, unknown)) for id in node.columns}
        for how, read in _deciding(node):
            rows |= _as(_of(given, read), how)
    root = made[_key(plan.root)]
    named = zip(plan.names, plan.root.columns, strict=True)
    return ColumnLineage({name: root[id] for name, id in named}, frozenset(rows))


_key: Callable[[Node], int] = id


def _own(node: Node) -> Iterator[Columns]:
    """What the operator reads of collections by itself."""
    if isinstance(node, Get):
        yield frozenset(InputColumn(node.collection, name, "identity") for _, name in node.outputs)


def _made(node: Node, given: Mapping[Id, Columns]) -> Mapping[Id, Columns]:
    """What the operator's own columns are made of."""
    match node:
        case Get():
            return {id: frozenset([InputColumn(node.collection, name, "identity")]) for id, name in node.outputs}
        case Map():
            return {id: _value(given, expr) for id, expr in node.outputs}
        case FlatMap():
            return {id: _as(_of(given, node.generator.refs), "transformation") for id in node.outputs}
        case Union():
            sides = [[given[id] for id in operand.columns] for operand in node.operands]
            return {id: frozenset().union(*parts) for id, *parts in zip(node.ids, *sides, strict=True)}
        case Accumulate():
            parts = {part.name: Expr(part.value).refs for part in node.accumulators}
            parts |= {part.id: part.value.refs for part in node.extremes}
            read = {id: _through(parts, Expr(sql)) for id, sql in node.outputs}
            return {id: _as(_of(given, refs), "aggregation") for id, refs in read.items()}
        case RecomputeGroups():
            return {one.id: _as(_of(given, one.sql.refs), "aggregation") for one in node.aggregates}
        case WindowGroups():
            return {id: _window(given, function) for id, function in node.functions}
    return {}


def _deciding(node: Node) -> Iterator[tuple[How, Iterable[Id]]]:
    """The columns by which the operator decides which rows there are."""
    match node:
        case Filter():
            yield "filter", node.predicate.refs
        case FlatMap():
            yield "join", node.generator.refs
        case DeltaJoin():
            yield "join", references(node.on)
        case LeftLinearJoin():
            sides = [side for one in node.equalities for side in (one.left, one.right)]
            yield "join", references((*sides, *node.residual))
        case Accumulate() | RecomputeGroups():
            yield "group_by", node.keys
        case TopGroups() | KeptTop():
            keys = node.keys if isinstance(node, TopGroups) else ()
            yield "sort", references(item.expr for item in node.order) | frozenset(keys)
        case Recompute() | Iterate():
            yield "filter", (id for child in node.inputs for id in child.columns)


def _through(parts: Mapping[str, frozenset[Id]], expr: Expr) -> frozenset[Id]:
    """What the expression reads, by what its parts read."""
    return frozenset(id for ref in expr.refs for id in parts.get(ref, (ref,)))


def _value(given: Mapping[Id, Columns], expr: Expr) -> Columns:
    return _as(_of(given, expr.refs), "transformation" if expr.as_column is None else "identity")


def _window(given: Mapping[Id, Columns], function: Expr) -> Columns:
    """The call's arguments, and what partition and order read beside them; ties are broken by all columns."""
    arguments = Expr.of(function.tree.this).refs
    return _as(_of(given, arguments), "transformation") | _as(_of(given, function.refs - arguments), "window")


def _of(given: Mapping[Id, Columns], ids: Iterable[Id]) -> Columns:
    """What columns of the operator's inputs are made of; other names, such as a row's multiplicity, are none."""
    return frozenset(column for id in ids for column in given.get(id, ()))


def _as(columns: Columns, how: How) -> Columns:
    """The columns as they take part in what is made of them. What an aggregate is computed of stays an aggregate."""
    return frozenset(InputColumn(one.collection, one.column, _later(one.how, how)) for one in columns)


def _later(first: How, second: How) -> How:
    both = first in _DIRECT and second in _DIRECT
    return max(first, second, key=_DIRECT.index) if both else first if second in _DIRECT else second
