"""A model's query as one Spark query over its inputs' contents, instead of its plan's delta."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Schema
from dbt_incremental_dd.core.time import BEGINNING
from dbt_incremental_dd.differential.groups import Recompute, RecomputeGroups, TopGroups, WindowGroups
from dbt_incremental_dd.differential.iterate import Iterate
from dbt_incremental_dd.differential.lower import DifferentialPlan
from dbt_incremental_dd.differential.state import stores
from dbt_incremental_dd.differential.top import KeptTop
from dbt_incremental_dd.differential.unbuilt import buildable_later
from dbt_incremental_dd.differential.window import breaks_ties
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.clock import with_run_time
from dbt_incremental_dd.frontend.parsed import ParsedQuery
from dbt_incremental_dd.frontend.template import template
from dbt_incremental_dd.logical.graph import each_once
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.now import bind_now
from dbt_incremental_dd.logical.recursion import Bound
from dbt_incremental_dd.relation.query import answer, view
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.stored import in_interval, read
from dbt_incremental_dd.runtime.request import Strategy
from dbt_incremental_dd.runtime.stored_plan import Compiled
from dbt_incremental_dd.trace.files import inserts_only
from dbt_incremental_dd.trace.log import total_rows
from dbt_incremental_dd.trace.spark_multiset import multiset
from dbt_incremental_dd.trace.spark_reader import no_rows, struct

if TYPE_CHECKING:
    from dbt_incremental_dd.render.context import Context, InputInterval

_ORDER_FREE = {
    *("any", "approx_count_distinct", "avg", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "corr", "count"),
    *("count_if", "covar_pop", "covar_samp", "every", "kurtosis", "max", "mean", "median", "min", "percentile"),
    *("skewness", "some", "std", "stddev", "stddev_pop", "stddev_samp", "sum", "var_pop", "var_samp", "variance"),
}
"""Aggregates that are the same for rows in any order, but for the last digits of floats."""


def may_recompute_next(compiled: Compiled, before: ModelManifest, *, fails_as_one: bool) -> bool:
    """Whether the next run may be a recompute. ``before``: the former manifest. A query that Spark has once failed to
    answer is not tried again."""
    has_failed = before.fingerprint == compiled.fingerprint and before.can_recompute is False
    return can_recompute(compiled.plan) and not fails_as_one and not has_failed


def leaves_behind(strategy: Strategy, plan: DifferentialPlan) -> bool:
    """Whether a run leaves states of the plan behind."""
    return strategy in ("recompute", "adopt") and any(stores(node) for node in each_once(plan.root))


def unbuilt_states(strategy: Strategy, plan: DifferentialPlan, before: Iterable[str]) -> tuple[str, ...]:
    """The states that a run leaves to be built when they are needed. ``before``: those that it has left of former
    ones'."""
    return buildable_later(plan) or () if strategy == "adopt" else tuple(sorted(before))


def can_recompute(plan: DifferentialPlan) -> bool:
    """Whether the query may be run as one in place of a delta: not if the plan is that query already, or a recursion,
    which Spark may not answer."""
    if isinstance(plan.root, Recompute):
        return False
    return not any(isinstance(node, Iterate | Bound) for node in each_once(plan.root))


def has_ties(plan: DifferentialPlan) -> bool:
    """Whether the query leaves open which of several answers it has. Each run of it as one may give another, so that
    rows change which no input's change implies."""
    return any(map(_breaks_ties, each_once(plan.root)))


def _breaks_ties(node: Node) -> bool:
    if isinstance(node, RecomputeGroups):
        return any(aggregate.function not in _ORDER_FREE for aggregate in node.aggregates)
    if isinstance(node, WindowGroups):
        return any(breaks_ties(function) for _, function in node.functions)
    return isinstance(node, TopGroups | KeptTop)


def recomputed(
    context: Context, query: ParsedQuery, inputs: Mapping[str, Input], plan: DifferentialPlan, *, of_files: bool = False
) -> Relation:
    """The answer as of the run's time, under the ids of the plan's root. ``of_files``: Spark reads every input itself,
    so that it can leave out what a condition does not want."""
    text, keys = template(with_run_time(query, inputs), inputs)
    most = 0 if of_files else context.thresholds.task_rows
    views = [_view(context, context.inputs[inputs[key].collection], most) for key in keys]
    former = total_rows(context.output[0].files) if context.output else 0
    bound = bind_now(text, context.t1).format(*views)
    return answer(context.workspace, bound, plan.root.columns, estimate=former + 1)


def _view(context: Context, source: InputInterval, most: int) -> str:
    """A view of an input's rows at the end of its interval; of at most so many updates they are summed up on the
    driver, so that Spark only reads."""
    files = source.log.summands(source.t1)
    if not files:
        return context.workspace.view(no_rows(context.spark, struct(source.schema)))
    count = total_rows(files)
    if count > most:
        found = multiset(context.spark, source.log.uri, files, source.schema, source.t1)
        return view(Relation(context.workspace, found, count, positive=True))
    stored = Schema((*source.schema.columns, TIME_COLUMN, DIFF_COLUMN))
    rows = read(context.workspace, source.log.uri, files, stored, most=most)
    rows = in_interval(rows, files, BEGINNING, source.t1).columns(source.schema.names)
    return view(replace(rows, positive=inserts_only(files)))
