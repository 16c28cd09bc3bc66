"""The Python API: collections under a state root, read without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.errors import ConfigError, StateError
from dbt_incremental_dd.core.frontier import Frontiers
from dbt_incremental_dd.core.manifest import Manifest, ModelManifest, SourceManifest, kind_of
from dbt_incremental_dd.core.rights import EVERYTHING, Rights
from dbt_incremental_dd.core.schedule import Due
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.core.time import BEGINNING, Time, parse_time
from dbt_incremental_dd.core.time import now as clock
from dbt_incremental_dd.subscribe.shape import Shape
from dbt_incremental_dd.subscribe.subscription import Start, Subscription
from dbt_incremental_dd.trace.arrow_reader import changes, contents, log_of
from dbt_incremental_dd.trace.columns import columns_of
from dbt_incremental_dd.trace.freshness import Freshness, Stored
from dbt_incremental_dd.trace.history import Entry, history
from dbt_incremental_dd.trace.holds import Hold, holds
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.log import Log, total_rows
from dbt_incremental_dd.trace.managed_frontier import declare, declared
from dbt_incremental_dd.trace.status import Reclaimable, Status, reclaimable, status

if TYPE_CHECKING:
    from dbt_incremental_dd.subscribe.selection import Selection


class Database:
    """All collections under one state root that ``rights`` let read; any other does not exist. Conditions on rows are
    applied by those who read rows: the query engine and ``Shape``."""

    def __init__(
        self,
        state_root: str,
        storage_options: Mapping[str, str] | None = None,
        thresholds: Thresholds | None = None,
        *,
        rights: Rights = EVERYTHING,
    ) -> None:
        self.storage = Storage(state_root, dict(storage_options or {}), thresholds or Thresholds())
        self.rights = rights

    def restricted(self, rights: Rights) -> Database:
        """The same collections under other rights."""
        found = copy(self)
        found.rights = rights
        return found

    def places(self) -> list[CollectionStore]:
        """The stores of all collections, by name; also of those that have no log yet."""
        return [place for place in self.storage.collections() if self.rights.may_read(place.name)]

    def collections(self) -> list[Collection]:
        """All stored collections, by name."""
        return [Collection(self.storage, place.name) for place in self.places() if place.log()]

    def __getitem__(self, name: str) -> Collection:
        """The collection called ``schema.identifier``. Raises StateError, listing the known ones, if there is none."""
        place = self.storage.collection(name)
        if not self.rights.may_read(place.name) or place.log() is None:
            known = ", ".join(place.name for place in self.places())
            remedy = f"Known collections: {known}." if known else "There are none yet: `dbt run` makes them."
            raise StateError(f"there is no collection {name} under {self.storage.root}", remedy)
        return Collection(self.storage, name.lower())

    def find(self, name: str) -> Collection:
        """The collection of that full name, or the only one whose last part it is. Raises StateError if there is none,
        ConfigError if there are several."""
        return self[self.full_name(name)]

    def full_name(self, name: str) -> str:
        """The full name of the only collection whose last part is ``name``; ``name`` itself if it is a full name or
        unknown. Raises ConfigError if there are several."""
        if "." in name:
            return name
        found = [c.name for c in self.collections() if c.name.rsplit(".", 1)[-1] == name.lower()]
        if len(found) > 1:
            raise ConfigError(f"{name} may be any of {', '.join(found)}", "Give its full name: schema.identifier.")
        return found[0] if found else name

    def status(self) -> list[Status]:
        """The status of each collection, by name."""
        held = holds(self.storage)
        return [collection.status(held.get(collection.name, ())) for collection in self.collections()]

    def freshness(self) -> dict[str, Freshness]:
        """How far each model with a ``target_lag`` is behind its sources, by name, as far as it is stored."""
        stored = Stored(self.storage)
        found = {place.name: stored.freshness(place.name) for place in self.places()}
        return {name: one for name, one in found.items() if one is not None}

    def due(self, now: Time | None = None, threads: int = 1) -> Due:
        """The models that must run at ``now`` (ms, default: the clock's time) so that those with a ``target_lag`` keep
        it, each after those above it, and when something is due next.

        Sources are not looked at: each is taken to have changed right after it was last read. A model without a
        ``target_lag`` is always due. ``threads``: models that run at the same time.
        """
        return Stored(self.storage).schedule(threads).due(clock() if now is None else now)

    def advance(self, name: str, complete_up_to: Time | str, *, first: bool = False) -> Time:
        """Declares a managed source complete up to a time, which becomes final: later records get later times. A
        frontier never goes back. Returns the time up to which the source is complete now.

        Raises ConfigError if it is no managed source or, without ``first``, if it is unknown while other collections
        exist; StateError if the state root cannot be written.
        """
        t = parse_time(complete_up_to)
        self.require_managed(name, first=first)
        self.storage.require_writable()
        return declare(self.storage.collection(name), t)

    def require_managed(self, name: str, *, first: bool = False) -> None:
        """Raises ConfigError if ``advance`` would raise it."""
        place = self.storage.collection(name)
        log = place.log()
        if log is None:
            others = [] if first or declared(place) is not None else [c.name for c in self.collections()]
            if others:
                raise ConfigError(
                    f"{place.name} is no source that has been taken in under {self.storage.root}",
                    f"Known collections: {', '.join(others)}. If it is new: dbt-dd advance {place.name} --first",
                )
            return
        manifest = place.read_manifest(log.manifest)
        if not isinstance(manifest, SourceManifest):
            raise ConfigError(f"{place.name} is a {kind_of(manifest)}, not a source", "Name a source.")
        if manifest.frontier != "managed":
            raise ConfigError(
                f"the frontier of {place.name} advances by itself with every run",
                "Set `frontier: managed` among the source's settings, and run once, to advance it yourself.",
            )


@dataclass(frozen=True)
class Collection:
    """One collection. Every call reads what is stored at that moment."""

    storage: Storage
    name: str

    @property
    def frontiers(self) -> Frontiers:
        """The collection is readable for ``since <= t < upper`` (ms)."""
        return self._log().frontiers

    @property
    def schema(self) -> Schema:
        """The visible columns."""
        return columns_of(self.place, self._log())

    @property
    def manifest(self) -> dict[str, object]:
        """The manifest of the last commit as it is stored: kind, SQL, inputs, ..."""
        manifest = self._manifest()
        return manifest.to_json() if manifest is not None else {}

    @property
    def table_uri(self) -> str | None:
        """The folder of its open table, which other engines read; None if it has none."""
        manifest = self._manifest()
        return self.place.table_uri if isinstance(manifest, ModelManifest) and manifest.output else None

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The live data files."""
        return self._log().files

    @property
    def updates(self) -> int:
        """The number of stored updates."""
        return total_rows(self.files)

    def history(self, latest: int = 100) -> tuple[Entry, ...]:
        """The last ``latest`` commits, oldest first."""
        return history(self.place, latest)

    def reclaimable(self, retain_history: int | None = None) -> Reclaimable:
        """What compaction would gain, given the current holds. ``retain_history``: the window in ms, by default the
        collection's own."""
        log = self._log()
        retain = (self._manifest() or Manifest()).retain_history if retain_history is None else retain_history
        return reclaimable(log, retain, holds(self.storage).get(self.name, ()))

    def status(self, held: Sequence[Hold] | None = None) -> Status:
        """The collection's status. ``held``: the holds on it, if they are known already."""
        log = self._log()
        manifest = self.place.read_manifest(log.manifest)
        return status(log, manifest, holds(self.storage).get(self.name, ()) if held is None else held)

    def freshness(self) -> Freshness | None:
        """How far the model is behind its sources, as far as it is stored; None if it has no ``target_lag``."""
        return Stored(self.storage).freshness(self.name)

    def changes(self, after: Time | str = BEGINNING, up_to: Time | str | None = None) -> pa.Table:
        """Updates with ``after < dd_time <= up_to`` (default: the latest final time), by time: visible columns,
        dd_time, dd_diff. Raises FrontierError if a time is not readable."""
        start: Time = BEGINNING if after == BEGINNING else parse_time(after)
        return changes(self.place, start, self.frontiers.last if up_to is None else parse_time(up_to))

    def as_of(self, t: Time | str | None = None) -> pa.Table:
        """The contents as of ``t`` (default: the latest final time): visible columns, and each row's count in dd_diff.
        Raises FrontierError if ``t`` is not readable."""
        return contents(self.place, self.frontiers.last if t is None else parse_time(t))

    def subscribe(
        self,
        as_of: Time | str | None = None,
        *,
        snapshot: bool = True,
        up_to: Time | str | None = None,
        select: str | None = None,
        key: Sequence[str] = (),
        name: str | None = None,
    ) -> Subscription:
        """The contents as of a time (default: the latest final one), unless ``snapshot`` is false, then every later
        change as it comes, up to and excluding ``up_to``. Iterate over its batches, synchronously or asynchronously.

        ``select``: ``SELECT ... FROM <this collection> WHERE ...``, a filter and a projection. ``key``: columns each of
        whose values has one row; batches then hold each key's new state. ``name``: continues the subscription of this
        name.

        Raises FrontierError if the history is gone, ConfigError or QueryError for invalid options.
        """
        start = Start(
            as_of=None if as_of is None else parse_time(as_of),
            snapshot=snapshot,
            up_to=None if up_to is None else parse_time(up_to),
        )
        return Subscription(self.place, start, Shape(self._selection(select), tuple(key)), name)

    def _selection(self, select: str | None) -> Selection | None:
        """Raises ConfigError if it reads another collection."""
        if select is None:
            return None
        from dbt_incremental_dd.subscribe.selection import Selection  # imports a SQL parser

        selection = Selection(select)
        if selection.collection.lower() not in (self.name, self.name.rpartition(".")[2]):
            raise ConfigError(
                f"a subscription to {self.name} cannot SELECT from {selection.collection}", f"SELECT from {self.name}."
            )
        return selection

    @property
    def place(self) -> CollectionStore:
        """Its place in the storage."""
        return self.storage.collection(self.name)

    def _manifest(self) -> Manifest | None:
        return self.place.read_manifest(self._log().manifest)

    def _log(self) -> Log:
        return log_of(self.place)
