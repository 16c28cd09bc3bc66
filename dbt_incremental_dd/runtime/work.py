"""Computing one model's change by the strategy that was chosen, and committing it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.manifest import Adopted, ModelManifest, RecordedChange, RecordedRun, rows_after
from dbt_incremental_dd.core.profile import note_operators, phase
from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.render.clock import OperatorClock
from dbt_incremental_dd.render.context import Context, InputInterval
from dbt_incremental_dd.render.inner import InnerTraces
from dbt_incremental_dd.render.renderer import Renderer
from dbt_incremental_dd.render.unbuilt import build_when_needed
from dbt_incremental_dd.runtime.agreement import hold_batch
from dbt_incremental_dd.runtime.costs import Costs
from dbt_incremental_dd.runtime.hints import hints, of_the_invocation
from dbt_incremental_dd.runtime.kept_history import KeptHistory
from dbt_incremental_dd.runtime.output import (
    OutputDelta,
    WrittenBatch,
    output_delta,
    stored_names,
    stored_rows,
    write_batch,
)
from dbt_incremental_dd.runtime.recompute import has_ties, leaves_behind, may_recompute_next, recomputed, unbuilt_states
from dbt_incremental_dd.runtime.relation import is_published, publish
from dbt_incremental_dd.runtime.request import ModelRequest, Outcome, Strategy
from dbt_incremental_dd.runtime.stored_plan import Compiled
from dbt_incremental_dd.runtime.strategy import InputSnapshot, StoredModel, costs_of, position_of, stamp
from dbt_incremental_dd.trace.columns import visible_schema
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.progress import progress

if TYPE_CHECKING:
    from dbt_incremental_dd.runtime.run_context import RunContext

_PATIENCE = 5.0
"""Seconds that a recursion's delta has in any case."""


class Work:
    """One model's change: what is there (``current``), what its inputs have (``given``), and the moment that it will
    show. ``order``: the columns by which its files are sorted. ``kept``: the history that is stored in place of the
    query's rows."""

    def __init__(
        self,
        run: RunContext,
        request: ModelRequest,
        current: StoredModel,
        given: tuple[InputSnapshot, ...],
        compiled: Compiled,
        t1: Time,
        order: tuple[str, ...],
        kept: KeptHistory | None,
    ) -> None:
        self._run = run
        self._request = request
        self._current = current
        self._given = given
        self._compiled = compiled
        self._t1 = t1
        self._order = order
        self._kept = kept
        self._schema = compiled.schema if kept is None else kept.schema
        self._at = stamp(current, given, t1)
        self._started = time.monotonic()
        self._fails_as_one = False
        self._adopted: Adopted | None = None

    def do(self, strategy: Strategy, *, afresh: bool = False, fails_as_one: bool = False) -> Outcome:
        """Renders by that strategy, commits, and publishes the relations; tells how it goes where that takes long.

        ``afresh``: nothing that is stored of the model is read, and its history is dropped. ``fails_as_one``: Spark
        does not answer the query as one.
        """
        run, name = self._run, self._request.name
        self._started, self._fails_as_one = time.monotonic() - run.session.waited, fails_as_one
        with progress(run.storage, self._current.place.uri, f"{name}, {strategy}", run.report):
            return self._do(strategy, afresh=afresh)

    def _do(self, strategy: Strategy, *, afresh: bool) -> Outcome:
        context = self._context(anew=strategy != "delta")
        try:
            with phase("compute"):
                rows = self._rows(context, strategy)
            same_columns = self._current.log is not None and self._same_columns(self._current.log)
            continues = same_columns if self._kept is None else self._continues
            subtract = strategy in ("rebuild", "recompute") and continues and not afresh
            beside_stored = strategy == "delta" or (subtract and same_columns)
            with phase("write"):
                batch = self._write(context, rows, subtract=subtract, beside_stored=beside_stored)
                self._adopted = self._first_rows(context, batch, strategy)
            self._started += context.once_seconds
            reached("model: written")
            with phase("commit"):
                log = self._commit(batch, context, strategy, reset=not beside_stored)
            reached("model: committed")
        finally:
            context.workspace.close()
        with phase("relations"):
            self._publish(log, batch)
        reached("model: published")
        return Outcome(
            self._request.name,
            strategy,
            self._at,
            rows_added=batch.added,
            rows_removed=batch.removed,
            input_rows=self._input_rows(strategy),
            updates=sum(file.rows for file in batch.files),
            fallbacks=self._compiled.plan.fallbacks,
            notes=tuple(self._notes(strategy)),
            bytes_written=sum(file.bytes for file in batch.files),
        )

    def _write(self, context: Context, rows: Relation | None, *, subtract: bool, beside_stored: bool) -> WrittenBatch:
        """The output's change for the query's rows, written and checked; nothing is visible yet."""
        delta = self._delta(context, rows, subtract=subtract)
        batch = write_batch(
            context,
            self._current.place,
            self._schema,
            delta=delta,
            t=self._at,
            arranged_by=self._order,
            former=self._current.manifest.rows if beside_stored else None,
        )
        hold_batch(
            self._run,
            self._request,
            self._current,
            schema=self._schema,
            change=delta.change,
            batch=batch,
            beside_stored=beside_stored,
        )
        return batch

    def _rows(self, context: Context, strategy: Strategy) -> Relation | None:
        plan = self._compiled.plan
        if strategy != "recompute":
            renderer = Renderer(context, plan.root, OperatorClock())
            build_when_needed(renderer, plan.root)
            rows = renderer.run()
            note_operators(renderer.profile())
            return rows
        return recomputed(context, self._request.query, self._inputs, plan)

    @property
    def _inputs(self) -> dict[str, Input]:
        return {item.key: Input(item.name, item.schema) for item in self._given}

    def _first_rows(self, context: Context, batch: WrittenBatch, strategy: Strategy) -> Adopted | None:
        """Where the model's first rows come from, as far as they are still those; a history's are in any case."""
        is_kept = strategy == "delta" or (self._kept is not None and self._continues)
        return self._current.manifest.adopted if is_kept else None

    def _delta(self, context: Context, rows: Relation | None, *, subtract: bool) -> OutputDelta:
        """The output's change for the query's rows; with ``subtract``, what they are beside those that are stored."""
        kept = self._kept
        if kept is None:
            return output_delta(
                context, self._compiled, rows, partial(stored_rows, context, schema=self._schema) if subtract else None
            )
        delta = output_delta(context, self._compiled, rows, partial(kept.current, context) if subtract else None)
        change = None if delta.change is None else delta.change.consolidate()
        delta = kept.delta(context, change, at=self._at, continues=self._continues)
        log = self._current.log
        return kept.widened(context, delta) if log is not None and subtract and not self._same_columns(log) else delta

    @property
    def _continues(self) -> bool:
        """Whether there is a history to go on from."""
        return self._current.is_built and bool(self._current.manifest.history)

    def _notes(self, strategy: Strategy) -> Iterator[str]:
        """What the user should change for runs to do less."""
        yield from hints(self._request.name, self._compiled.plan)
        if strategy == "rebuild" and self._current.manifest.fingerprint != self._compiled.fingerprint:
            told = of_the_invocation(self._current.manifest.sql, self._request.sql, self._run.invocation)
            if told:
                yield told

    def _context(self, *, anew: bool) -> Context:
        report, current = self._run.report, self._current.manifest
        workspace = Workspace(self._run.session, self._run.storage, self._run.found)
        place = self._current.place
        inner = InnerTraces(workspace, place, current.inner, fresh=anew, report=report, unbuilt=current.unbuilt)
        output = None if self._current.log is None else (self._current.log, self._schema)
        return Context(
            workspace,
            BEGINNING if anew else self._current.position.as_of,
            self._t1,
            at=self._at,
            inputs={
                item.name: InputInterval(item.log, item.schema, BEGINNING if anew else item.read, item.up_to)
                for item in self._given
            },
            output=output,
            inner=inner,
            report=report,
            recursion_limit=self._request.config.recursion_limit,
            allowance=math.inf if anew else self._allowance(),
            arrangements=current.arrangements if current.fingerprint == self._compiled.fingerprint else (),
        )

    def _allowance(self) -> float:
        """What a build would take, as far as that is known, and a few seconds at least."""
        if self._request.config.strategy == "delta":
            return math.inf
        total = sum(item.updates for item in self._given)
        build = Costs.of(self._current.manifest).build(total)
        return math.inf if build is None else max(build, _PATIENCE)

    def _same_columns(self, log: Log) -> bool:
        return self._current.is_built and visible_schema(self._current.manifest, log) == self._schema

    def _commit(self, batch: WrittenBatch, context: Context, strategy: Strategy, *, reset: bool) -> Log:
        place = self._current.place
        stored = stored_names(self._schema)
        log = self._current.log or place.create(stored)
        manifest = place.write_manifest(self._manifest(batch, context, strategy, reset=reset))
        since = self._at if reset else None
        commit = Commit(
            add=batch.files,
            upper=self._at + 1,
            since=since,
            manifest=manifest,
            schema=stored if reset else None,
            replace_all=reset,
        )
        committed = log.commit(commit)
        self._run.note(self._at)
        return committed

    def _manifest(self, batch: WrittenBatch, context: Context, strategy: Strategy, *, reset: bool) -> ModelManifest:
        request, compiled, before = self._request, self._compiled, self._current.manifest
        contract, plan, input_rows = request.config.contract, compiled.plan, self._input_rows(strategy)
        seconds = time.monotonic() - self._run.session.waited - self._started
        unbuilt = unbuilt_states(strategy, plan, context.inner.unbuilt)
        return ModelManifest(
            schema=self._schema,
            rows=rows_after(None if reset else before, batch.added, batch.removed),
            change=RecordedChange(strategy, input_rows, batch.added, batch.removed, round(seconds, 3)),
            retain_history=request.config.retain_history,
            inner=context.inner.versions(),
            sorted_by=self._order,
            fingerprint=compiled.fingerprint,
            relation=request.relation,
            sql=request.sql,
            inputs={item.key: item.name for item in self._given},
            position=position_of(self._given, self._t1).stored(self._at),
            temporal=plan.is_temporal,
            can_recompute=may_recompute_next(compiled, before, fails_as_one=self._fails_as_one),
            has_ties=has_ties(plan),
            behind=leaves_behind(strategy, plan) or bool(unbuilt),
            fallbacks=plan.fallbacks,
            unique_id=request.unique_id,
            runs=self._runs(strategy, seconds),
            contract=contract.text if contract else "",
            arrangements=context.arrangements,
            history=request.config.history_settings,
            output=request.config.output,
            target_lag=request.config.target_lag,
            adopted=self._adopted,
            unbuilt=unbuilt,
        )

    def _runs(self, strategy: Strategy, seconds: float) -> tuple[RecordedRun, ...]:
        if strategy == "adopt":
            return ()
        total = sum(item.updates for item in self._given)
        return costs_of(self._current, self._given).with_run(strategy, self._input_rows(strategy), total, seconds)

    def _publish(self, log: Log, batch: WrittenBatch) -> None:
        """Where nothing of the output changed its relations stay as they are."""
        place, relation, schema = self._current.place, self._request.relation, self._schema
        anew = self._current.manifest.relation != relation or not self._same_columns(log)
        description = self._request.config.description
        if anew or batch.files or not is_published(place, relation, log, schema, description):
            publish(self._run.catalog, place, relation, log, schema, anew=anew, description=description)

    def _input_rows(self, strategy: Strategy) -> int:
        if strategy != "delta":
            return sum(item.updates for item in self._given)
        return sum(item.changed for item in self._given)
