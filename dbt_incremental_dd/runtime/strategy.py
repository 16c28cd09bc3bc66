"""What a model's run starts from, and by which strategy it gets to the new time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.errors import ConfigError, StateError
from dbt_incremental_dd.core.manifest import ModelManifest, kind_of
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.time import BEGINNING, Time, format_time
from dbt_incremental_dd.runtime.costs import Costs
from dbt_incremental_dd.runtime.request import ModelRequest, Strategy
from dbt_incremental_dd.sources.config import SourceSpec, parse_source
from dbt_incremental_dd.trace.columns import visible_schema
from dbt_incremental_dd.trace.files import between
from dbt_incremental_dd.trace.layout import CollectionStore
from dbt_incremental_dd.trace.log import Log, total_rows
from dbt_incremental_dd.trace.position import Position, position

if TYPE_CHECKING:
    from dbt_incremental_dd.runtime.run_context import RunContext


@dataclass(frozen=True)
class InputSnapshot:
    """One input as of this run: its log, and what is visible of it.

    ``began``: where it was before this run. ``as_of``: the moment that its latest contents show. ``read`` and
    ``up_to``: the times between which its updates are new to the model (``reading``).
    """

    key: str
    log: Log
    schema: Schema
    began: Time
    as_of: Time
    read: Time = BEGINNING
    up_to: Time = BEGINNING

    @property
    def name(self) -> str:
        """The collection's name."""
        return self.log.name

    @property
    def updates(self) -> int:
        """The number of updates that a build reads."""
        return total_rows(self.log.summands(self.up_to))

    @property
    def changed(self) -> int:
        """The number of updates that are new to the model."""
        return total_rows(between(self.log.files, self.read, self.up_to))


@dataclass(frozen=True)
class StoredModel:
    """The model as it is stored: None and empty where it never was."""

    place: CollectionStore
    log: Log | None = None
    manifest: ModelManifest = field(default_factory=ModelManifest)

    @property
    def is_built(self) -> bool:
        """Whether there is an output to go on from."""
        return self.log is not None and bool(self.manifest.fingerprint)

    @property
    def last(self) -> Time:
        """The latest time that is final."""
        return self.log.frontiers.last if self.log is not None else BEGINNING

    @cached_property
    def position(self) -> Position:
        """Up to where its inputs have been read."""
        return position(self.log, self.manifest) if self.log is not None and self.is_built else Position()


def resolve(run: RunContext, request: ModelRequest) -> tuple[InputSnapshot, ...]:
    """Every relation that the SQL reads, sources taken in. Raises StateError if one of them has gone back."""
    found = []
    read = {} if request.full_refresh else _read(run, request.name)
    for relation in request.relations:
        how = request.inputs.get(relation.key)
        name = how.name if isinstance(how, SourceSpec) else relation.key
        run.inputs.require_ahead(request.name, read.get(name, BEGINNING), name)
        if how == "model":
            place = run.storage.collection(relation.key)
            log = place.log()
            if log is None or log.manifest is None:
                raise StateError(
                    f"{request.name} reads {relation.key}, which has not been built yet",
                    f"Run it first: dbt run --select +{request.name.split('.')[-1]}",
                )
            began, manifest = run.inputs.begin(relation.key), place.read_manifest(log.manifest)
            as_of = position(log, manifest).as_of
            found.append(InputSnapshot(relation.key, log, visible_schema(manifest, log), began, as_of))
        else:
            spec = how if isinstance(how, SourceSpec) else parse_source(relation.key, relation.sql, {}, {}, "")
            taken = run.source(spec)
            began = run.inputs.begin(spec.name)
            found.append(InputSnapshot(relation.key, taken.log, taken.schema, began, taken.log.frontiers.last))
    return tuple(found)


def _read(run: RunContext, name: str) -> Mapping[str, Time]:
    """The latest time that the model has read of each of its inputs."""
    run.inputs.begin(name)
    place = run.storage.collection(name)
    log = place.log()
    return {} if log is None else position(log, place.read_manifest(log.manifest)).inputs


def moment(run: RunContext, current: StoredModel, given: tuple[InputSnapshot, ...]) -> Time:
    """The moment that the model will show: the latest at which all inputs are final. It goes back only if they do."""
    return min([max(run.time, current.position.as_of), *(item.as_of for item in given)])


def reading(given: tuple[InputSnapshot, ...], current: StoredModel, t1: Time) -> tuple[InputSnapshot, ...]:
    """The inputs with the times between which each is read, to show the moment ``t1``.

    An input whose latest contents show ``t1`` or an earlier moment is read to its end. Another is read at ``t1``; not
    before its history begins, and not before what the model has read of it already.
    """
    before = current.position

    def up_to(item: InputSnapshot) -> Time:
        last = item.log.frontiers.last
        if item.as_of <= t1:
            return last
        read = before.inputs.get(item.name, BEGINNING) if t1 >= before.as_of else BEGINNING
        return min(last, max(t1, item.log.frontiers.since, read))

    return tuple(replace(item, read=before.inputs.get(item.name, BEGINNING), up_to=up_to(item)) for item in given)


def stamp(current: StoredModel, given: tuple[InputSnapshot, ...], t1: Time) -> Time:
    """The time of the model's new contents: ``t1``, unless that is final already or an input is read beyond it. So a
    collection at some time never shows later versions of its inputs than they do."""
    return max([t1, current.last + 1, *(item.up_to for item in given)])


def position_of(given: tuple[InputSnapshot, ...], t1: Time) -> Position:
    """Where a model stands that shows the moment ``t1`` of these inputs."""
    return Position(t1, {item.name: item.up_to for item in given})


def current_of(run: RunContext, request: ModelRequest) -> StoredModel:
    """Raises StateError where what is stored is damaged; with a full refresh it is removed instead, unless it is a
    history."""
    place = run.storage.collection(request.name)
    try:
        log = place.log()
        manifest = place.read_manifest(log.manifest) if log else None
    except StateError as error:
        if not request.full_refresh or request.config.history is not None:
            raise
        run.report(f"{request.name}: {error.message}; it is removed, and built anew")
        place.remove()
        return StoredModel(place)
    if manifest is None:
        return StoredModel(place, log)
    if not isinstance(manifest, ModelManifest):
        raise StateError(
            f"{request.name} is stored as a {kind_of(manifest)}, and cannot be a model too",
            "Give the model another alias or schema, or remove its folder under state_root.",
        )
    return StoredModel(place, log, manifest)


def choose(
    request: ModelRequest, current: StoredModel, given: tuple[InputSnapshot, ...], mark: str, t1: Time, opening: float
) -> tuple[Strategy, str]:
    """How to get there, and why where it is not by delta. ``opening``: seconds of opening a session."""
    if not current.is_built:
        return "initial", "it is new"
    if request.full_refresh:
        return "rebuild", "a full refresh was asked for"
    if current.manifest.fingerprint != mark:
        if current.manifest.sql != request.sql:
            return "rebuild", "its SQL has changed"
        if current.manifest.history != request.config.history_settings:
            return "rebuild", "the settings of its history have changed"
        return "rebuild", "the columns of an input, a function, or the session's settings have changed"
    has_passed = t1 > current.position.as_of
    if not has_passed and all(item.up_to <= item.read for item in given):
        return "skip", ""
    forgotten = [item for item in given if item.log.frontiers.since > item.read]
    if forgotten:
        return "rebuild", f"{forgotten[0].name} no longer has its history since {format_time(forgotten[0].read)}"
    behind = [item for item in given if BEGINNING < item.began < item.read]
    if behind:
        return "rebuild", f"{behind[0].name} had gone back to {format_time(behind[0].began)}"
    changed = sum(item.changed for item in given)
    if not changed and not (has_passed and current.manifest.temporal):
        return "skip", ""
    total, costs = sum(item.updates for item in given), costs_of(current, given)
    if request.config.strategy == "delta":
        return ("rebuild", "its last run left the states behind") if costs.behind else ("delta", "")
    strategy = costs.choose(changed, total, opening)
    return strategy, "former runs say that a delta would take longer" if strategy == "rebuild" else ""


def costs_of(current: StoredModel, given: tuple[InputSnapshot, ...]) -> Costs:
    """What the model's runs took."""
    return Costs.of(current.manifest, (item.name for item in given if item.changed))


def require_columns(request: ModelRequest, current: StoredModel, wanted: Schema) -> None:
    """Raises ConfigError where columns changed that must not."""
    policy = request.config.columns
    if policy == "any" or current.log is None or not current.is_built:
        return
    have = {c.name: c.type for c in visible_schema(current.manifest, current.log)}
    want = {c.name: c.type for c in wanted}
    changes = {
        "new": [name for name in want if name not in have and policy == "fixed"],
        "gone": [name for name in have if name not in want],
        "other type": [name for name in want if have.get(name, want[name]) != want[name]],
    }
    shown = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in changes.items() if names)
    if shown:
        raise ConfigError(
            f"{request.name}: its columns have changed ({shown}), and on_schema_change is {_POLICIES[policy]}",
            "Give it its former columns, or set on_schema_change: sync_all_columns.",
        )


_POLICIES = {"fixed": "fail", "kept": "append_new_columns"}
