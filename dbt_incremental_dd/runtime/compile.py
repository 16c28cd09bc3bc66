"""From a model's SQL to its differential plan."""

from __future__ import annotations

import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from pyspark.errors import AnalysisException
from sqlglot.errors import SqlglotError

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.foreign import is_foreign
from dbt_incremental_dd.core.schema import Column, Schema, is_reserved
from dbt_incremental_dd.differential.lower import DifferentialPlan
from dbt_incremental_dd.differential.lower import lower as lower_differential
from dbt_incremental_dd.frontend.block import Input, NoAnalysis, TypesOf, unknown
from dbt_incremental_dd.frontend.check import check
from dbt_incremental_dd.frontend.clock import with_run_time
from dbt_incremental_dd.frontend.faithful import is_faithful, orders_columns
from dbt_incremental_dd.frontend.lower import Query, lower_alone, whole
from dbt_incremental_dd.frontend.lower import lower as lower_logical
from dbt_incremental_dd.frontend.parsed import NotParsed, ParsedQuery
from dbt_incremental_dd.frontend.place import place, place_of_fragment
from dbt_incremental_dd.frontend.reason import readable
from dbt_incremental_dd.frontend.recursion import is_recursive
from dbt_incremental_dd.frontend.template import template
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.logical.passes import optimize
from dbt_incremental_dd.relation.lazy_session import LazySession, Meaning
from dbt_incremental_dd.render.types import DriverTypes, PlanTypes
from dbt_incremental_dd.runtime import stored_plan
from dbt_incremental_dd.runtime.request import ModelRequest
from dbt_incremental_dd.runtime.stored_plan import Compiled
from dbt_incremental_dd.runtime.syntax import told_by_spark
from dbt_incremental_dd.trace.layout import CollectionStore

PLAN_VERSION = 16
"""Raised whenever the same SQL may compile to another plan: plans are stored, and so are the states that they name."""
NOTHING: Mapping[str, Any] = MappingProxyType({})


def fingerprint(
    meaning: Meaning,
    query: ParsedQuery,
    inputs: Mapping[str, Input],
    own: Mapping[str, str],
    history: Mapping[str, Any] = NOTHING,
) -> str:
    """Of the SQL's tokens (neither spaces nor comments), the inputs' schemas, the plan version, what the session makes
    of expressions, the definitions of the user's own functions (``own``), and the settings of the history that is kept
    of the rows."""
    schemas = {key: [given.collection, given.schema.to_json()] for key, given in sorted(inputs.items())}
    further = [dict(own)] if own or history else []
    further += [dict(history)] if history else []
    text = json.dumps([PLAN_VERSION, meaning, query.words, schemas, *further])
    return hashlib.sha256(text.encode()).hexdigest()


_CACHE: OrderedDict[tuple[str, str], Compiled] = OrderedDict()
_CACHED = 500


def compile_cached(
    session: LazySession,
    place: CollectionStore,
    query: ParsedQuery,
    inputs: Mapping[str, Input],
    own: Mapping[str, str],
    history: Mapping[str, Any] = NOTHING,
    *,
    mark: str,
) -> Compiled:
    """``compile_model``, but a plan that was made before is taken again: this process's, or the one stored with the
    model. ``mark``: the fingerprint."""
    key = (place.name, mark)
    if key not in _CACHE:
        found = stored_plan.load(place, mark)
        if found is None:
            found = compile_model(session, place.name, query, inputs, own, history)
            stored_plan.store(place, found)
        _CACHE[key] = found
        while len(_CACHE) > _CACHED:
            _CACHE.popitem(last=False)
    return _CACHE[key]


def compile_model(
    session: LazySession,
    name: str,
    query: ParsedQuery,
    inputs: Mapping[str, Input],
    own: Mapping[str, str] | None = None,
    history: Mapping[str, Any] = NOTHING,
) -> Compiled:
    """The plan of one model. Raises UnsupportedSQL for what cannot be maintained, before anything is written.
    ``history``: settings of the one that is kept of its rows, in place of the rows.

    Spark is not asked if the driver knows all types: then it accepts the query.
    """
    try:
        check(query)
    except NotParsed as error:
        raise told_by_spark(session.spark, query.sql, error) from error
    is_output = not history
    made = compiled_on_driver(session, name, query, inputs, is_output=is_output)
    plan, schema = made or _with_spark(session, name, query, inputs, is_output=is_output)
    return Compiled(plan, schema, fingerprint(session.meaning, query, inputs, own or {}, history))


def compiled_on_driver(
    session: LazySession,
    name: str,
    written: ParsedQuery,
    inputs: Mapping[str, Input],
    *,
    is_output: bool = True,
    spells_out: bool = False,
    needs_names: bool = True,
) -> tuple[DifferentialPlan, Schema] | None:
    """The plan and its columns; None if only Spark can say whether it accepts the query, or why not. ``spells_out``:
    parts that read nothing are computed by operators, too; ``needs_names``: whether a column that has no name in the
    query needs the one that Spark gives it."""
    if not is_faithful(written):
        return None
    types = DriverTypes(session, _schemas(inputs))
    try:
        timed = with_run_time(written, inputs)
        query = lower_alone(timed, inputs, partial(_literal_shape, session), types.known, spells_out=spells_out)
        as_written = types.of(query.plan)
        named = query.names if needs_names else tuple(name or f"_c{at}" for at, name in enumerate(query.names))
        query = Query(optimize(query.plan), named)
        found = types.of(query.plan)
        if [c.type for c in found] != [c.type for c in as_written] or not all(query.names):
            return None
        if not orders_columns(written, query.names):
            return None
        schema = Schema(tuple(Column(label, c.type) for label, c in zip(query.names, found, strict=True)))
        plan = lower_differential(query.plan, query.names, types, is_output=is_output)
        return plan, _as_relation(name, schema)
    except (NotExact, NoAnalysis, SqlglotError, UnsupportedSQL):
        return None


def _literal_shape(session: LazySession, template: str, relations: tuple[Schema, ...]) -> Schema:
    """The columns of a query that reads nothing, if the driver computes it."""
    rows = None if relations else session.literal_rows(template.format())
    if rows is None:
        raise NoAnalysis(template)
    return rows.schema


def _schemas(inputs: Mapping[str, Input]) -> dict[str, Schema]:
    return {given.collection: given.schema for given in inputs.values()}


def _with_spark(
    session: LazySession, name: str, written: ParsedQuery, inputs: Mapping[str, Input], *, is_output: bool
) -> tuple[DifferentialPlan, Schema]:
    """The plan and its columns, which are those that Spark says."""
    types, known = PlanTypes(session, _schemas(inputs)), DriverTypes(session, _schemas(inputs)).known
    query, schema = _query(types, name, written, inputs, known)
    timed = with_run_time(written, inputs)
    try:
        plan = lower_differential(query.plan, query.names, types, is_output=is_output)
    except UnsupportedSQL as error:  # an operator would have to keep what cannot be stored
        if is_recursive(written.tree):
            raise
        query = whole(timed, inputs, schema, error.construct)
        plan = lower_differential(query.plan, query.names, types, is_output=is_output)
    return plan, schema


def require_deltas(plan: DifferentialPlan, request: ModelRequest) -> None:
    """Raises UnsupportedSQL, with the reasons, where a part would be recomputed whole and the model refuses that."""
    if plan.fallbacks and request.config.fallback == "error":
        raise UnsupportedSQL(
            f"would be recomputed: {'; '.join(plan.fallbacks)}", "Rewrite it, or set `fallback: recompute`."
        )


def _query(
    types: PlanTypes, name: str, written: ParsedQuery, inputs: Mapping[str, Input], known: TypesOf = unknown
) -> tuple[Query, Schema]:
    """The logical plan, and the columns that it must have."""
    try:
        schema = output_schema(types, name, written, inputs)
    except UnsupportedSQL:
        if not is_recursive(written.tree):
            raise
        return _query_alone(types, name, written, inputs, known)
    timed = with_run_time(written, inputs)
    query = lower_logical(timed, inputs, schema, types.of_sql, known)
    query = Query(optimize(query.plan), query.names)
    reason = _differs(types, query, schema)
    return (whole(timed, inputs, schema, reason) if reason else query), schema


def _query_alone(
    types: PlanTypes, name: str, written: ParsedQuery, inputs: Mapping[str, Input], known: TypesOf
) -> tuple[Query, Schema]:
    """The same for a recursive query that Spark does not answer: there is nothing to fall back to."""
    query = lower_alone(with_run_time(written, inputs), inputs, types.of_sql, known)
    query = Query(optimize(query.plan), query.names)
    try:
        found = types.of(query.plan)
    except AnalysisException as error:
        raise UnsupportedSQL(_told(error, written.sql), "Correct the query.") from error
    schema = Schema(tuple(Column(label, c.type) for label, c in zip(query.names, found, strict=True)))
    return query, _as_relation(name, schema)


def _differs(types: PlanTypes, query: Query, schema: Schema) -> str | None:
    """Why the plan cannot be trusted: Spark types it otherwise than the SQL itself, or does not accept it."""
    try:
        found = [column.type for column in types.of(query.plan)]
    except AnalysisException as error:
        return f"its plan is not understood by Spark ({readable(error)})"
    except UnsupportedSQL as error:
        return error.construct
    wanted = [column.type for column in schema]
    if found == wanted:
        return None
    i = next(i for i, (a, b) in enumerate(zip(found, wanted, strict=True)) if a != b)
    return f"column {schema.names[i]} would be {found[i]} instead of {wanted[i]}"


def _told(error: AnalysisException, sql: str) -> str:
    """Spark's message in a line, with the place in the user's SQL: Spark's own is that in another text."""
    reason = re.sub(r"; line \d+ pos \d+;?$", "", str(error).strip().splitlines()[0])
    named = error.getMessageParameters() or {}
    name = next((named[key] for key in ("objectName", "routineName", "relationName", "name") if named.get(key)), "")
    if name:
        return reason + place(sql, name)
    fragments = [context.fragment() for context in error.getQueryContext() or ()]
    return reason + (place_of_fragment(sql, fragments[0]) if fragments else "")


def output_schema(types: PlanTypes, name: str, written: ParsedQuery, inputs: Mapping[str, Input]) -> Schema:
    """What Spark says the query's columns are. Raises UnsupportedSQL where they cannot be a relation's."""
    text, keys = template(written, inputs)
    try:
        schema = types.of_sql(text, [inputs[key].schema for key in keys])
    except AnalysisException as error:
        raise UnsupportedSQL(_told(error, written.sql), "Correct the query.") from error
    except Exception as error:
        refused = _REFUSED.search(str(error)) if is_foreign(error) else None
        if refused is None:
            raise
        raise UnsupportedSQL(refused[0].strip(), "Write it in another way, or set what it names.") from error
    return _as_relation(name, schema)


_REFUSED = re.compile(r"\[[A-Z][A-Z0-9_.]+\] [^\n]+")
"""How Spark begins a reason, also where it refuses a query by an error that is no AnalysisException."""


def _as_relation(name: str, schema: Schema) -> Schema:
    """The schema, if a relation can have it."""
    if not schema.names:
        raise UnsupportedSQL(f"{name} has no column", "Select one at least.")
    lowered = [column.name.lower() for column in schema]
    twice = sorted({column for column in lowered if lowered.count(column) > 1})
    if twice:
        raise UnsupportedSQL(f"{name} has more than one column called {', '.join(twice)}", "Give each its own alias.")
    reserved = [column for column in schema.names if is_reserved(column)]
    if reserved:
        told = f"{name} has a column called {reserved[0]}, which is reserved: names that begin with dd_ are"
        raise UnsupportedSQL(told, "Give it another alias.")
    return schema
