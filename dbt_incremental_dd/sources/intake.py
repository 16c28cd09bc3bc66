"""Taking a source in: what is new of it becomes updates of a stored collection, exactly once.

The batch, the frontier and the progress that belongs to them are one commit. A run that is killed before it leaves
nothing visible, and the next one reads the same records again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.core.errors import DifferentialError, SourceError, StateError
from dbt_incremental_dd.core.foreign import file_of, is_foreign, reason
from dbt_incremental_dd.core.points import reached
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME_COLUMN, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.sources.connectors.registry import connector_of
from dbt_incremental_dd.sources.dead_letter import good_records
from dbt_incremental_dd.sources.envelopes import append, changelog, debezium, replica, snapshot
from dbt_incremental_dd.sources.envelopes import upsert_spark as upsert
from dbt_incremental_dd.sources.envelopes.envelope import Change, Taking, record_names
from dbt_incremental_dd.sources.exchange import Records, write
from dbt_incremental_dd.sources.pending import NODE, Waiting
from dbt_incremental_dd.sources.poll import Moments, Visit
from dbt_incremental_dd.sources.poll_result import Arrival
from dbt_incremental_dd.sources.secrets import without
from dbt_incremental_dd.trace.arrow import BOUNDED_TYPES
from dbt_incremental_dd.trace.counts import count, count_stored
from dbt_incremental_dd.trace.damage import damage, logs_of, may_be_damage
from dbt_incremental_dd.trace.declared import declared
from dbt_incremental_dd.trace.layout import Place, Storage
from dbt_incremental_dd.trace.lock import writing
from dbt_incremental_dd.trace.log import Commit, Log, total_rows
from dbt_incremental_dd.trace.manifest import change_of
from dbt_incremental_dd.trace.progress import progress
from dbt_incremental_dd.trace.read import schema_of, struct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENVELOPES: Mapping[str, ModuleType] = {
    "append": append,
    "upsert": upsert,
    "debezium": debezium,
    "changelog": changelog,
    "snapshot": snapshot,
    "replica": replica,
}


@dataclass(frozen=True)
class Intake:
    """A source after it was taken in: its log, visible columns, and how many updates are new."""

    name: str
    log: Log
    schema: Schema
    rows: int
    note: str = ""


def take_in(
    spark: SparkSession,
    storage: Storage,
    spec: SourceSpec,
    t: Time,
    report: Callable[[str], None],
    moments: Moments | None = None,
) -> Intake:
    """Brings the source's collection to ``t``. Raises SourceError, naming the source; then nothing was taken in.

    ``moments``: what the run's sources have in common.
    """
    place, common = storage.collection(spec.name), moments or Moments(lambda: (spec,))
    with writing(place, report):
        try:
            return _told(storage, place, spec, lambda: _take_in(spark, place, spec, t, report, common))
        except DifferentialError as error:
            hidden = without(spec.secrets, error)
            if hidden is None:
                raise
        raise hidden


def _told(storage: Storage, place: Place, spec: SourceSpec, take: Callable[[], Intake]) -> Intake:
    """What ``take`` returns; a library's failure becomes an error that the user can read."""
    try:
        return take()
    except Exception as error:
        if not is_foreign(error):
            raise
        raise _failed(storage, place, spec, error) from error


def _failed(storage: Storage, place: Place, spec: SourceSpec, error: Exception) -> DifferentialError:
    """What the user can do about a failure of Spark's, Arrow's or the disk's."""
    contents = may_be_damage(error)
    damaged = next((found for log in logs_of(place) if (found := damage(storage, log, contents))), None)
    if damaged is not None:
        return StateError(
            f"what is stored of source {spec.name} is damaged: {damaged}",
            f"Restore the file, or remove {place.uri} to take the source in anew.",
        )
    file = file_of(error)
    where = f"{file} of it cannot be read" if file else "it cannot be taken in"
    return SourceError(
        f"source {spec.name}: {where}: {reason(error)}",
        "Correct or remove what it names. Nothing of this intake is stored.",
    )


def _take_in(
    spark: SparkSession, place: Place, spec: SourceSpec, t: Time, report: Callable[[str], None], moments: Moments
) -> Intake:
    log = place.log()
    manifest = place.read_manifest(log.manifest) if log else {}
    if manifest and manifest.get("kind") != "source":
        raise StateError(
            f"{spec.name} is stored as a {manifest.get('kind')}, and is now read as a source",
            "Remove its folder under state_root, or make it a differential model again.",
        )
    if manifest and manifest.get("envelope") != spec.envelope:
        raise SourceError(
            f"source {spec.name}: it was taken in with envelope {manifest['envelope']}, now it is {spec.envelope}",
            "Set the envelope back, or remove its folder under state_root to take it in anew.",
        )
    if spec.frontier == "managed":
        t = min(t, _complete_up_to(place, log if manifest else None))
    if log is not None and manifest and t < log.frontiers.upper:
        return Intake(spec.name, log, Schema.from_json(str(manifest["schema"])), 0)
    return _Intaking(spark, place, log if manifest else None, manifest, spec, t, report, moments).run()


def _complete_up_to(place: Place, log: Log | None) -> Time:
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


def _as_spelt(spec: SourceSpec, schema: Schema) -> SourceSpec:
    """The spec with the columns' own spelling of their names, which settings may write in other case."""

    def own(name: str | None) -> str | None:
        column = schema.find(name) if name else None
        return column.name if column else name

    return replace(
        spec,
        key=tuple(str(own(name)) for name in spec.key),
        order_by=tuple(str(own(name)) for name in spec.order_by),
        diff_column=own(spec.diff_column),
        op_column=own(spec.op_column),
    )


def _counted(records: Records) -> int | None:
    """How many there are, where that is known without a Spark job."""
    return None if records.local is None else records.local.num_rows


class _Intaking:
    """One intake."""

    def __init__(
        self,
        spark: SparkSession,
        place: Place,
        log: Log | None,
        manifest: Mapping[str, Any],
        spec: SourceSpec,
        t: Time,
        report: Callable[[str], None],
        moments: Moments,
    ) -> None:
        self._moments = moments
        self._spark = spark
        self._place = place
        self._log = log
        self._manifest = manifest
        self._spec = spec
        self._t = t
        self._report = report
        self._started = time.monotonic()
        self._waiting = Waiting(spark, place, spec, t, manifest.get("inner", {}).get(NODE))

    def run(self) -> Intake:
        """Reads what is new, makes it updates, and commits."""
        arrival = self._arrivals()
        if arrival is None and self._waiting.is_due:
            arrival = Arrival(self._waiting.no_records(), self._manifest["progress"])
        if arrival is None:
            assert self._log is not None
            reached("source: nothing new")
            log = self._log.commit(Commit(upper=self._t + 1))
            return Intake(self._spec.name, log, Schema.from_json(str(self._manifest["schema"])), 0)
        what = f"taking in source {self._spec.name}"
        reached("source: arrived")
        try:
            with progress(self._place.storage, self._place.trace_uri, what, self._report):
                return self._take(arrival)
        finally:
            for uri in arrival.scratch:
                self._place.storage.remove(uri)

    def _arrivals(self) -> Arrival | None:
        text = self._manifest.get("records")
        stored = Schema.from_json(str(text)) if text else None
        progress = self._manifest.get("progress", {})
        visit = Visit(self._spark, self._place, self._spec, progress, stored, self._log, self._moments)
        return connector_of(self._spec).arrivals(visit)

    def _take(self, arrival: Arrival) -> Intake:
        if arrival.key is not None:
            self._spec = replace(self._spec, key=arrival.key)
        records, note = good_records(self._place, self._spec, arrival, self._t)
        record_schema = records.schema.select(record_names(records))
        schema = self._visible(record_schema)
        self._spec = _as_spelt(self._spec, record_schema if self._spec.envelope == "changelog" else schema)
        split, all_columns = self._waiting.split(records), records.schema
        records = split.due
        inner = dict(self._manifest.get("inner", {}))
        taking = Taking(self._spark, self._spec, self._place, self._log, schema, arrival, records, self._t, inner)
        change: Change = ENVELOPES[self._spec.envelope].change(taking)
        updates = change.updates.localized()
        stored = Schema((*updates.schema.columns[:-1], TIME_COLUMN, DIFF_COLUMN))
        batch = self._write(updates, stored)
        reached("source: updates written")
        inner.update(change.finish())
        inner.update(self._waiting.commit(split, all_columns))
        reached("source: states written")
        local = updates.local
        counts = (
            count_stored(self._place.storage, self._place.trace_uri, batch) if local is None else count(local[DIFF])
        )
        seconds = time.monotonic() - self._started
        manifest = {
            "kind": "source",
            **change_of(self._manifest, "delta" if self._manifest else "initial", _counted(records), counts, seconds),
            "envelope": self._spec.envelope,
            "schema": schema.to_json(),
            "records": record_schema.to_json(),
            "frontier": self._spec.frontier,
            "retain_history": self._spec.retain_history,
            "progress": dict(arrival.progress),
            "inner": inner,
            "sorted_by": self._sorted_by(),
        }
        log = self._log or self._place.create(stored)
        commit = Commit(
            add=batch,
            upper=self._t + 1,
            since=self._t if self._log is None else None,
            manifest=self._place.write_manifest(manifest),
            schema=stored,
        )
        notes = "; ".join(n for n in (*arrival.notes, *change.notes, note) if n)
        if notes:
            self._report(f"source {self._spec.name}: {notes}")
        log = log.commit(commit)
        reached("source: committed")
        arrival.confirm()
        reached("source: confirmed")
        return Intake(self._spec.name, log, schema, total_rows(batch), notes)

    def _visible(self, schema: Schema) -> Schema:
        """The columns that queries see. Raises SourceError where a key column is not among them."""
        if self._spec.envelope == "debezium":
            schema = schema_of(debezium.row_fields(struct(schema)))
        elif self._spec.envelope == "changelog":
            schema = schema.select(changelog.visible(self._spec, schema.names))
        for name in (*self._spec.key, *self._spec.order_by):
            if schema.find(name) is None and not (self._spec.envelope == "debezium" and name in self._spec.order_by):
                raise SourceError(
                    f"source {self._spec.name}: there is no column {name}; there are {', '.join(schema.names)}",
                    "Correct `key` or `order_by` in the source's settings.",
                )
        return schema

    def _write(self, updates: Records, stored: Schema) -> tuple[Any, ...]:
        bounded = [column.name for column in stored if column.type in BOUNDED_TYPES][:16]
        return write(self._place.storage, self._place.trace_uri, updates, stored, self._t, bounded, self._sorted_by())

    def _sorted_by(self) -> tuple[str, ...]:
        return self._spec.key if self._spec.envelope in ("upsert", "debezium", "replica") else ()
