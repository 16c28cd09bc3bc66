"""What a run asks a source's connector with."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.sources.spec import SourceSpec
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.log import Log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
S = TypeVar("S", bound=SourceSpec, covariant=True)


class RunScope:
    """What the sources of one run have in common, such as the position up to which a database's log is read.

    Threads may share it. ``sources``: all that the run will read, as far as is known.
    """

    def __init__(self, sources: Callable[[], Sequence[SourceSpec]] = tuple) -> None:
        self._sources = sources
        self._lock = threading.RLock()
        self._found: dict[Hashable, Any] = {}

    def expect(self, sources: Callable[[], Sequence[SourceSpec]]) -> None:
        """Tells what the run will read; asked only where a connector needs to know."""
        with self._lock:
            self._sources = sources

    @property
    def sources(self) -> tuple[SourceSpec, ...]:
        """What the run will read."""
        return self.of("sources", lambda: tuple(self._sources()))

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of the key, made by whoever asks first; the others wait for it."""
        with self._lock:
            if key not in self._found:
                self._found[key] = make()
            value: T = self._found[key]
            return value


@dataclass(frozen=True)
class PollRequest(Generic[S]):
    """``progress``: as of the last commit, empty at first; ``stored``: the columns of records as first taken in;
    ``log``: the source's collection, None at first; ``in_pieces``: whether ``PollResult.pieces`` may be. ``replaces``:
    the progress of what is taken in anew, as though at first; None if nothing is."""

    workspace: Workspace
    place: CollectionStore
    spec: S
    progress: Mapping[str, Any]
    stored: Schema | None
    log: Log | None
    scope: RunScope
    in_pieces: bool = True
    replaces: Mapping[str, Any] | None = None

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.workspace.spark

    @property
    def storage(self) -> Storage:
        """Where collections are stored."""
        return self.place.storage
