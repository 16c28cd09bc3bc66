"""One model's run: from its inputs' frontiers to its own output commit."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.core.deep_nesting import allow_deep_nesting, nested_too_deeply
from dbt_incremental_dd.core.errors import QueryError, RecursionLimit, StateError, UnsupportedSQL
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.profile import phase
from dbt_incremental_dd.core.reads import counting
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.parsed import NotParsed
from dbt_incremental_dd.render.loop import TooCostly
from dbt_incremental_dd.runtime.adopted_history import AdoptedHistoryWork
from dbt_incremental_dd.runtime.adoption import Adoption
from dbt_incremental_dd.runtime.adoption_work import AdoptionWork
from dbt_incremental_dd.runtime.agreement import hold_columns, hold_stored
from dbt_incremental_dd.runtime.compile import compile_cached, fingerprint, require_deltas
from dbt_incremental_dd.runtime.failure import explained, require_whole
from dbt_incremental_dd.runtime.kept_history import KeptHistory, require_kept, require_undamaged
from dbt_incremental_dd.runtime.kept_table import keep_table
from dbt_incremental_dd.runtime.observers import ModelRun
from dbt_incremental_dd.runtime.output import arranged
from dbt_incremental_dd.runtime.relation import is_published, publish
from dbt_incremental_dd.runtime.request import ModelRequest, Outcome
from dbt_incremental_dd.runtime.routines import routines
from dbt_incremental_dd.runtime.stored_plan import Compiled
from dbt_incremental_dd.runtime.strategy import (
    InputSnapshot,
    StoredModel,
    choose,
    current_of,
    moment,
    position_of,
    reading,
    require_columns,
    resolve,
)
from dbt_incremental_dd.runtime.syntax import told_by_spark
from dbt_incremental_dd.runtime.work import Work
from dbt_incremental_dd.trace.columns import visible_schema
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.lock import writing

if TYPE_CHECKING:
    from dbt_incremental_dd.runtime.run_context import RunContext


def run_model(run: RunContext, model: ModelRun) -> Outcome:
    """Brings the model to the latest time, up to the run's, at which all its inputs are final. ``model`` learns of it.

    Raises DifferentialError, naming the model; then nothing of the run is visible.
    """
    started, request = time.monotonic(), model.request
    allow_deep_nesting()
    try:
        outcome = _run(run, model)
    except RecursionError as error:
        told = nested_too_deeply()
        raise UnsupportedSQL(f"{request.name}: {told.construct}", told.remedy) from error
    except NotParsed as error:
        told = told_by_spark(run.session.spark, request.sql, error)
        raise UnsupportedSQL(f"{request.name}: {told.construct}", told.remedy) from error
    except UnsupportedSQL as error:
        raise UnsupportedSQL(f"{request.name}: {error.construct}", error.remedy) from error
    except RecursionLimit as error:
        raise RecursionLimit(f"{request.name}: {error.message}", error.remedy) from error
    return replace(outcome, seconds=time.monotonic() - started)


def _run(run: RunContext, model: ModelRun) -> Outcome:
    request = model.request
    with ExitStack() as held:
        with phase("inputs"):
            model.inputs = given = resolve(run, request)
            for item in given:  # no model may be ahead of its inputs, whatever happens
                item.log.await_entry()
            held.enter_context(writing(run.storage.collection(request.name), run.report))
            current = current_of(run, request)
        reads = held.enter_context(counting())
        outcome = replace(_write(run, model, given, current), reads=reads)
        keep_table(run, request, current)
        if outcome.updates:
            with phase("compaction"):
                run.forget(current.place)
        return outcome


def _write(run: RunContext, model: ModelRun, given: tuple[InputSnapshot, ...], current: StoredModel) -> Outcome:
    request = model.request
    with phase("plan"):
        require_kept(request, current)
        inputs = {item.key: Input(item.name, item.schema) for item in given}
        slowest = min(given, key=lambda item: item.as_of, default=None)
        held_back_by = slowest.name if slowest and slowest.as_of < run.time else ""
        t1 = moment(run, current, given)
        input_lag = max((item.as_of for item in given), default=t1) - t1
        model.inputs = given = reading(given, current, t1)
        own = routines(run.session, request.query)
        mark = fingerprint(run.session.meaning, request.query, inputs, own, request.config.history_settings)
        strategy, why = choose(request, current, given, mark, t1, run.session.opening)
        about: dict[str, Any] = {"held_back_by": held_back_by, "input_lag": input_lag}
        if strategy == "skip":
            return replace(_skip(run, model, current, given=given, t1=t1), **about)
        adoption = Adoption.of(run, request) if strategy == "initial" else None
        strategy = strategy if adoption is None else "adopt"
        work = _planned(run, model, current, given, inputs, own, mark=mark, t1=t1, adoption=adoption)
    if strategy == "delta" and why:
        run.report(f"{request.name}: {why}")
    try:
        if run.storage.is_local:  # where it is cheap to look
            require_whole(run.storage, current)
        outcome = work.do(strategy)
        return replace(outcome, **about, why=outcome.why or why)
    except TooCostly:
        why, afresh = "following the change takes longer than a build", False
    except Exception as error:
        failed = explained(run.storage, request.name, current, given, error)
        if strategy == "recompute" and isinstance(failed, QueryError):
            run.report(f"{failed.message}; building it by its plan instead")
            why = "Spark failed to run its query as one"
            return replace(work.do("rebuild", fails_as_one=True), **about, why=why)
        if failed is not error and not isinstance(failed, StateError):
            raise failed from error
        if not isinstance(failed, StateError) or strategy in ("initial", "adopt"):
            raise
        has_history = request.config.history is not None
        if has_history:
            require_undamaged(run.storage, current)
        why, afresh = failed.message, not has_history
    run.report(f"{request.name}: {why}; it is built anew")
    return replace(work.do("rebuild", afresh=afresh), **about, why=why)


def _planned(
    run: RunContext,
    model: ModelRun,
    current: StoredModel,
    given: tuple[InputSnapshot, ...],
    inputs: Mapping[str, Input],
    own: Mapping[str, str],
    mark: str,
    t1: Time,
    adoption: Adoption | None,
) -> Work:
    """The work that is to be done. Raises DifferentialError where the model must not become what its query says."""
    request = model.request
    compiled = compile_cached(
        run.session, current.place, request.query, inputs, own, request.config.history_settings, mark=mark
    )
    require_deltas(compiled.plan, request)
    kept = _kept(request, current, compiled)
    schema = compiled.schema if kept is None else kept.schema
    model.plan, model.schema = compiled.plan, schema
    require_columns(request, current, schema)
    order = arranged(request, schema) or (kept.sorted_by if kept is not None else ())
    hold_columns(run, request, current, schema)
    adopting = AdoptionWork if kept is None else AdoptedHistoryWork
    work = Work if adoption is None else partial(adopting, adoption)
    return work(run, request, current, given=given, compiled=compiled, t1=t1, order=order, kept=kept)


def _kept(request: ModelRequest, current: StoredModel, compiled: Compiled) -> KeptHistory | None:
    """The history that is stored in place of the query's rows. Raises ConfigError where it does not fit the query, or
    what is stored."""
    if request.config.history is None:
        return None
    kept = KeptHistory.of(request.name, request.config.history, compiled.schema)
    kept.require_continued(current.manifest, current.log)
    return kept


def _skip(
    run: RunContext,
    model: ModelRun,
    current: StoredModel,
    given: tuple[InputSnapshot, ...],
    t1: Time,
) -> Outcome:
    """Nothing changed: only the frontier moves, if at all. No Spark job, unless a run has ended before its relations
    were made."""
    log, request = current.log, model.request
    assert log is not None
    model.schema = schema = visible_schema(current.manifest, log)
    manifest = replace(
        current.manifest,
        contract=hold_stored(run, request, current, schema),
        output=request.config.output,
        target_lag=request.config.target_lag,
    )
    if current.position.as_of < t1 <= current.last:
        manifest = replace(manifest, position=position_of(given, t1).stored(current.last))
    is_other = manifest != current.manifest
    if t1 > current.last or is_other:
        reached("skip: before")
        if is_other:
            number = current.place.write_manifest(manifest)
            log = log.commit(Commit(upper=t1 + 1 if t1 > current.last else None, manifest=number))
        else:
            log = log.advance(t1 + 1)
    description = request.config.description
    is_shown = is_published(current.place, request.relation, log, schema, description)
    if not is_shown or not run.catalog.has_view(request.relation):
        publish(run.catalog, current.place, request.relation, log, schema, anew=False, description=description)
    t = max(t1, current.last)
    return Outcome(request.name, "skip", t)
