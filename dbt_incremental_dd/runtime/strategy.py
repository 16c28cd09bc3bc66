"""What a model's run starts from, and by which strategy it gets to the new time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.core.errors import ConfigError, StateError
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.time import BEGINNING, Time, format_time
from dbt_incremental_dd.frontend.relations import relations
from dbt_incremental_dd.runtime.costs import Costs
from dbt_incremental_dd.runtime.request import ModelRequest, Strategy
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.trace.files import between
from dbt_incremental_dd.trace.layout import Place
from dbt_incremental_dd.trace.log import Log, total_rows
from dbt_incremental_dd.trace.manifest import columns_of, visible_schema

if TYPE_CHECKING:
    from dbt_incremental_dd.runtime.run import Run


@dataclass(frozen=True)
class Given:
    """One input as of this run: its log, and what is visible of it. ``began``: where it was before this run."""

    key: str
    log: Log
    schema: Schema
    began: Time

    @property
    def name(self) -> str:
        """The collection's name."""
        return self.log.name


@dataclass(frozen=True)
class Current:
    """The model as it is stored: None and empty where it never was."""

    place: Place
    log: Log | None
    manifest: Mapping[str, Any]

    @property
    def is_built(self) -> bool:
        """Whether there is an output to go on from."""
        return self.log is not None and "fingerprint" in self.manifest

    @property
    def last(self) -> Time:
        """The time that the model is at."""
        return self.log.frontiers.last if self.log is not None and self.is_built else BEGINNING


def resolve(run: Run, request: ModelRequest) -> tuple[Given, ...]:
    """Every relation that the SQL reads, sources taken in. Raises StateError if one of them has gone back."""
    found = []
    last = BEGINNING if request.full_refresh else run.inputs.begin(request.name)
    for relation in relations(request.sql):
        how = request.inputs.get(relation.key)
        run.inputs.require_ahead(request.name, last, how.name if isinstance(how, SourceSpec) else relation.key)
        if how == "model":
            place = run.storage.collection(relation.key)
            log = place.log()
            if log is None or log.manifest is None:
                raise StateError(
                    f"{request.name} reads {relation.key}, which has not been built yet",
                    f"Run it first: dbt run --select +{request.name.split('.')[-1]}",
                )
            began = run.inputs.begin(relation.key)
            found.append(Given(relation.key, log, columns_of(place, log), began))
        else:
            spec = how if isinstance(how, SourceSpec) else SourceSpec(f"{relation.key}", relation.sql)
            taken = run.source(spec)
            began = run.inputs.begin(spec.name)
            found.append(Given(relation.key, taken.log, taken.schema, began))
    return tuple(found)


def current_of(run: Run, request: ModelRequest) -> Current:
    """Raises StateError where what is stored is damaged; with a full refresh it is removed instead."""
    place = run.storage.collection(request.name)
    try:
        log = place.log()
        manifest = place.read_manifest(log.manifest) if log else {}
    except StateError as error:
        if not request.full_refresh:
            raise
        run.report(f"{request.name}: {error.message}; it is removed, and built anew")
        place.remove()
        log, manifest = None, {}
    if manifest and manifest.get("kind") != "model":
        raise StateError(
            f"{request.name} is stored as a {manifest.get('kind')}, and cannot be a model too",
            "Give the model another alias or schema, or remove its folder under state_root.",
        )
    return Current(place, log, manifest)


def choose(
    request: ModelRequest, current: Current, given: tuple[Given, ...], mark: str, t1: Time
) -> tuple[Strategy, str]:
    """How to get there, and why where it is not by delta."""
    if not current.is_built:
        return "initial", "it is new"
    if request.full_refresh:
        return "rebuild", "a full refresh was asked for"
    if current.manifest["fingerprint"] != mark:
        return "rebuild", "its SQL or an input's columns changed"
    t0 = current.last
    if t1 <= t0:
        return "skip", ""
    forgotten = [item.name for item in given if item.log.frontiers.since > t0]
    if forgotten:
        return "rebuild", f"{forgotten[0]} no longer has its history since {format_time(t0)}"
    behind = [item for item in given if BEGINNING < item.began < t0]
    if behind:
        return "rebuild", f"{behind[0].name} had gone back to {format_time(behind[0].began)}"
    changed = sum(total_rows(between(item.log.files, t0, t1)) for item in given)
    if not changed and not current.manifest.get("temporal"):
        return "skip", ""
    if Costs.of(current.manifest).favours_build(changed, sum(total_rows(item.log.files) for item in given)):
        return "rebuild", f"{changed:,} changed updates are more than a delta is worth"
    return "delta", ""


def require_columns(request: ModelRequest, current: Current, wanted: Schema) -> None:
    """Raises ConfigError where columns changed that must not."""
    if not request.config.fixed_columns or current.log is None or not current.is_built:
        return
    have = {c.name: c.type for c in visible_schema(dict(current.manifest), current.log)}
    want = {c.name: c.type for c in wanted}
    if have == want:
        return
    changes = {
        "new": [name for name in want if name not in have],
        "gone": [name for name in have if name not in want],
        "other type": [name for name in want if have.get(name, want[name]) != want[name]],
    }
    shown = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in changes.items() if names)
    raise ConfigError(
        f"{request.name}: its columns have changed ({shown}), and on_schema_change is fail",
        "Give it its former columns, or set on_schema_change: sync_all_columns.",
    )
