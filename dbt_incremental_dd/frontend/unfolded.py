"""A recursive query as texts without recursion, for an engine that iterates them one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlglot import exp

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.frontend.block import Analyze, Environment, Input
from dbt_incremental_dd.frontend.parsed import ParsedQuery
from dbt_incremental_dd.frontend.recursion import groups, recurs, schemas_of, standing_in
from dbt_incremental_dd.frontend.relations import relation_of
from dbt_incremental_dd.frontend.scope import Ids


@dataclass(frozen=True)
class Binding:
    """One binding: the key of the relation that stands for it, its columns, and its query's text over ``keys``."""

    key: str
    schema: Schema
    text: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Unfolded:
    """A query without recursion: ``text`` over ``keys``, some of which stand for the bindings of ``loops``."""

    loops: tuple[tuple[Binding, ...], ...]
    text: str
    keys: tuple[str, ...]


def unfolded(query: ParsedQuery, inputs: Mapping[str, Input], analyze: Analyze) -> Unfolded:
    """The query as texts that an engine without recursion can iterate. Raises UnsupportedSQL as ``lower`` does."""
    tree, around = query.tree.copy(), Environment(inputs, analyze, Ids())
    loops: list[tuple[Binding, ...]] = []
    for with_ in reversed([with_ for with_ in tree.find_all(exp.With) if with_.recursive]):
        environment = replace(_environment_at(with_, around), inputs=around.inputs)
        ordered: list[exp.CTE] = []
        for group in groups(with_):
            if recurs(group):
                environment, steps = _unfolded_group(environment, group)
                loops.append(steps)
                for cte in group:
                    cte.replace(stand_in := environment.ctes[cte.alias.lower()][0].copy())
                    ordered.append(stand_in)
            else:
                environment = environment.with_cte(group[0])
                ordered += group
        with_.set("expressions", ordered)
        with_.set("recursive", False)
        around = replace(around, inputs=environment.inputs)
    return Unfolded(tuple(loops), *around.text(tree))


def _unfolded_group(environment: Environment, group: Sequence[exp.CTE]) -> tuple[Environment, tuple[Binding, ...]]:
    schemas = schemas_of(environment, group)
    inside = standing_in(environment, schemas)
    steps = []
    for cte in group:
        stand_in, _ = inside.ctes[cte.alias.lower()]
        (table,) = stand_in.find_all(exp.Table)
        text, keys = inside.text(cte.this.copy())
        steps.append(Binding(relation_of(table).key, schemas[cte.alias.lower()], text, keys))
    return inside, tuple(steps)


def _environment_at(with_: exp.With, environment: Environment) -> Environment:
    """What is defined around the query that a WITH belongs to."""
    assert with_.parent is not None
    path: list[exp.Expr] = [with_.parent]
    while path[-1].parent is not None:
        path.append(path[-1].parent)
    for below, node in reversed(list(pairwise(path))):
        around = node.args.get("with_") if below is not node.args.get("with_") else None
        if isinstance(node, exp.With):
            for cte in node.expressions[: node.expressions.index(below)]:
                environment = environment.with_cte(cte)
        elif around is not None:
            environment = environment.with_ctes(around)
    return environment
