"""Taking a source in: what is new of it becomes updates of a stored collection, exactly once.

The batch, the frontier and the progress that belongs to them are one commit. A run that is killed before it leaves
nothing visible, and the next one reads the same records again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dbt_incremental_dd.core.errors import DifferentialError, SourceError, StateError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.manifest import RecordedChange, SourceManifest, kind_of, rows_after
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.sources.connectors.registry import connector_of
from dbt_incremental_dd.sources.dead_letter import forget, good_records
from dbt_incremental_dd.sources.definition import ColumnsChanged, definition, in_words, redefined, with_new_columns
from dbt_incremental_dd.sources.envelopes.envelope import EnvelopeInput
from dbt_incremental_dd.sources.failure import told
from dbt_incremental_dd.sources.keep import Keep
from dbt_incremental_dd.sources.pending import NODE, Pending
from dbt_incremental_dd.sources.poll import PollRequest, RunScope
from dbt_incremental_dd.sources.poll_result import PollResult
from dbt_incremental_dd.sources.records import no_records, own_columns
from dbt_incremental_dd.sources.secrets import without
from dbt_incremental_dd.sources.spec import SourceSpec
from dbt_incremental_dd.sources.updates import NotInPieces, Written, written, written_in_pieces
from dbt_incremental_dd.trace.columns import visible_schema
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.found_rows import FoundRows
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.lock import writing
from dbt_incremental_dd.trace.log import Log, total_rows
from dbt_incremental_dd.trace.managed_frontier import declared
from dbt_incremental_dd.trace.progress import progress


@dataclass(frozen=True)
class Intake:
    """A source after it was taken in: its log, visible columns, and how many updates are new."""

    name: str
    log: Log
    schema: Schema
    rows: int
    note: str = ""


def take_in(
    session: LazySession,
    storage: Storage,
    spec: SourceSpec,
    t: Time,
    report: Callable[[str], None],
    scope: RunScope | None = None,
    found: FoundRows | None = None,
) -> Intake:
    """Brings the source's collection to ``t``. Raises SourceError, naming the source; then nothing was taken in.

    ``scope``: what the run's sources have in common. ``found``: what the run has found by key, for models to use.
    """
    place, common = storage.collection(spec.name), scope or RunScope(lambda: (spec,))
    workspace = Workspace(session, storage, found)

    def take() -> Intake:
        return _take_in(workspace, place, spec, t=t, report=report, scope=common)

    with writing(place, report):
        try:
            return told(storage, place, spec, take)
        except DifferentialError as error:
            hidden = without(spec.secrets, error)
            if hidden is None:
                raise
        raise hidden


def _take_in(
    workspace: Workspace,
    place: CollectionStore,
    spec: SourceSpec,
    t: Time,
    report: Callable[[str], None],
    scope: RunScope,
) -> Intake:
    log = place.log()
    manifest = place.read_manifest(log.manifest) if log else None
    if manifest is not None and not isinstance(manifest, SourceManifest):
        raise StateError(
            f"{spec.name} is stored as a {kind_of(manifest)}, and is now read as a source",
            "Remove its folder under state_root, or make it a differential model again.",
        )
    if spec.frontier == "managed":
        t = min(t, _complete_up_to(place, log if manifest is not None else None))
    if log is not None and manifest is not None and t < log.frontiers.upper:
        return Intake(spec.name, log, visible_schema(manifest, log), 0)
    try:
        before = log if manifest is not None else None
        return _Intaking(workspace, place, before, manifest=manifest, spec=spec, t=t, report=report, scope=scope).run()
    finally:
        workspace.close()


def _complete_up_to(place: CollectionStore, log: Log | None) -> Time:
    """What has been said of a managed source. Raises SourceError where nothing has, and nothing is taken in."""
    found = declared(place)
    if found is not None:
        return found
    if log is not None:
        return log.frontiers.last
    raise SourceError(
        f"source {place.name}: its frontier is managed, and nobody has advanced it yet",
        f"Say up to when it is complete: dbt-dd advance {place.name} --to TIME.",
    )


class _Intaking:
    """One intake."""

    def __init__(
        self,
        workspace: Workspace,
        place: CollectionStore,
        log: Log | None,
        manifest: SourceManifest | None,
        spec: SourceSpec,
        t: Time,
        report: Callable[[str], None],
        scope: RunScope,
    ) -> None:
        self._scope = scope
        self._workspace = workspace
        self._place = place
        self._committed = log
        """What the commit goes on from."""
        self._log = log
        """What is taken in beside: None at first, and if it is taken in anew."""
        self._before = manifest
        self._stored = manifest or SourceManifest()
        self._replaces: Mapping[str, Any] | None = None
        self._spec = spec
        self._settings = spec.settings
        """As the records' columns are spelt, once these are known."""
        self._t = t
        self._report = report
        self._started = time.monotonic()
        self._pending = Pending(workspace, place, spec, t, self._stored.inner.get(NODE))
        self._keep = Keep(workspace, spec, t, self._stored.kept_from, log)

    def run(self) -> Intake:
        """Reads what is new, makes it updates, and commits."""
        has_new_columns = self._follow_settings()
        result = self._poll(in_pieces=True)
        if result is None and has_new_columns and self._stored.records is not None:
            result = PollResult(no_records(self._workspace, self._stored.records), self._stored.progress)
        if result is None and self._pending.is_due:
            result = PollResult(self._pending.no_records(), self._stored.progress)
        if result is None and self._keep.is_due and self._stored.records is not None:
            result = PollResult(no_records(self._workspace, self._stored.records), self._stored.progress)
        if result is None:
            assert self._log is not None
            reached("source: nothing new")
            log = self._log.advance(self._t + 1)
            return Intake(self._spec.name, log, visible_schema(self._stored, log), 0)
        what = f"taking in source {self._spec.name}"
        reached("source: arrived")
        try:
            with progress(self._place.storage, self._place.trace_uri, what, self._report):
                return self._taken(result)
        finally:
            for uri in result.scratch:
                self._place.storage.remove(uri)

    def _follow_settings(self) -> bool:
        """Begins anew if the settings have changed since the last commit. Returns whether its records have new columns
        instead. Raises SourceError where neither is possible."""
        spec, session = self._spec, self._workspace.session
        changed = redefined(self._stored, spec, session)
        if not changed:
            return False
        if spec.envelope.is_whole or spec.is_replayed:
            self._begin_anew(in_words(changed))
            return False
        self._stored = with_new_columns(self._stored, spec, session, changed)
        return True

    def _begin_anew(self, why: str) -> None:
        """Continues as though nothing had been taken in; one commit then replaces what is stored."""
        self._report(f"source {self._spec.name}: {why}: it is taken in anew")
        self._replaces, self._log, self._before, self._stored = self._stored.progress, None, None, SourceManifest()
        self._pending = Pending(self._workspace, self._place, self._spec, self._t, None)
        self._keep = Keep(self._workspace, self._spec, self._t, None, None)

    def _taken(self, result: PollResult) -> Intake:
        """Where records in pieces turn out to be none that the driver can take in, they are read once more."""
        try:
            return self._take(result)
        except NotInPieces:
            again = self._poll(in_pieces=False)
        assert again is not None
        try:
            return self._take(again)
        finally:
            for uri in again.scratch:
                self._place.storage.remove(uri)

    def _poll(self, *, in_pieces: bool) -> PollResult | None:
        try:
            return connector_of(self._spec).poll(self._request(in_pieces=in_pieces))
        except ColumnsChanged as error:
            if not self._spec.envelope.is_whole or self._replaces is not None:
                raise
            self._begin_anew(f"its columns changed ({error.changes})")
        return self._poll(in_pieces=in_pieces)

    def _request(self, *, in_pieces: bool) -> PollRequest[SourceSpec]:
        return PollRequest(
            self._workspace,
            self._place,
            self._spec,
            progress=self._stored.progress,
            stored=self._stored.records,
            log=self._log,
            scope=self._scope,
            in_pieces=in_pieces,
            replaces=self._replaces,
        )

    def _take(self, result: PollResult) -> Intake:
        if self._replaces is not None:
            forget(self._place, self._spec)
        records, note = good_records(self._place, self._spec, result, self._t)
        record_schema = own_columns(records)
        schema = self._visible(record_schema, result)
        split, all_columns = self._pending.split(records), records.schema
        due, late = self._keep.in_time(split.due, schema)
        sort_by = self._spec.envelope.sort_key(self._settings) or self._keep.sort_key(schema)
        inner = dict(self._stored.inner)
        batch = EnvelopeInput(
            workspace=self._workspace,
            name=self._spec.name,
            location=self._spec.location,
            settings=self._settings,
            place=self._place,
            log=self._log,
            schema=schema,
            result=result,
            records=due,
            sort_by=sort_by,
            gone=self._keep.gone(schema),
            t=self._t,
            inner=inner,
        )
        pieces = None if result.pieces is None else result.pieces.of()
        made = written(batch, self._spec) if pieces is None else written_in_pieces(batch, self._spec, pieces)
        reached("source: updates written")
        inner.update(made.finish())
        inner.update(self._pending.commit(split, all_columns))
        reached("source: states written")
        manifest = replace(
            self._history(made),
            schema=schema,
            records=record_schema,
            progress=result.progress,
            inner=inner,
            kept_from=self._keep.since,
            sorted_by=sort_by,
        )
        notes = "; ".join(n for n in (*result.notes, note, late) if n)
        if notes:
            self._report(f"source {self._spec.name}: {notes}")
        log = self._commit(made, manifest)
        reached("source: committed")
        result.confirm()
        reached("source: confirmed")
        return Intake(self._spec.name, log, schema, total_rows(made.files), notes)

    def _history(self, made: Written) -> SourceManifest:
        """What the manifest says of the intake, whatever its records are."""
        seconds = time.monotonic() - self._started
        strategy = "delta" if self._before is not None else "initial" if self._replaces is None else "rebuild"
        return SourceManifest(
            rows=rows_after(self._before, made.added, made.removed),
            change=RecordedChange(strategy, made.records, made.added, made.removed, round(seconds, 3)),
            envelope=self._spec.envelope.name,
            definition=definition(self._spec, self._workspace.session),
            frontier=self._spec.frontier,
            retain_history=self._spec.retain_history,
        )

    def _commit(self, made: Written, manifest: SourceManifest) -> Log:
        log = self._committed or self._place.create(made.stored)
        commit = Commit(
            add=made.files,
            upper=self._t + 1,
            since=self._t if self._log is None else None,
            manifest=self._place.write_manifest(manifest),
            schema=made.stored,
            replace_all=self._replaces is not None,
        )
        return log.commit(commit)

    def _visible(self, records: Schema, result: PollResult) -> Schema:
        """The columns that queries see. Raises SourceError if a key column is not among them."""
        envelope, settings = self._spec.envelope, self._settings
        if result.key is not None:
            settings = replace(settings, key=result.key)
        schema = envelope.visible_schema(settings, records)
        for name in envelope.needed_columns(settings):
            if schema.find(name) is None:
                raise SourceError(
                    f"source {self._spec.name}: there is no column {name}; there are {', '.join(schema.names)}",
                    "Correct `key` or `order_by` in the source's settings.",
                )
        self._settings = settings.as_spelt(schema, records)
        return schema
