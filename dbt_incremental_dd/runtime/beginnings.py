"""Where each collection was when a run came upon it: an input must not be behind what a model has read of it.

Such an input has lost its newest commits. It is refused before this run adds to it, for afterwards nothing would show
that. If another model of the run has brought it further already, the model is built anew (``strategy.choose``).
"""

from __future__ import annotations

import threading

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.time import BEGINNING, Time, format_time
from dbt_incremental_dd.trace.layout import Storage


class Beginnings:
    """Of the collections of one run. Threads may share it."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._began: dict[str, Time] = {}
        self._refused: dict[str, StateError] = {}
        self._lock = threading.Lock()

    def begin(self, name: str) -> Time:
        """The latest final time of a collection as of when it was first asked for; the beginning if it is new."""
        with self._lock:
            return self._begin(name)

    def require_ahead(self, model: str, last: Time, name: str) -> None:
        """Raises StateError if the collection is behind ``last``, up to which the model has read it."""
        with self._lock:
            if name in self._refused:
                raise self._refused[name]
            is_known = name in self._began
            began = self._begin(name)
            if not is_known and BEGINNING < began < last:
                del self._began[name]
                self._refused[name] = self._lost(model, last, name, began)
                raise self._refused[name]

    def _begin(self, name: str) -> Time:
        if name not in self._began:
            log = self._storage.collection(name).log()
            self._began[name] = BEGINNING if log is None or log.manifest is None else log.frontiers.last
        return self._began[name]

    def _lost(self, model: str, last: Time, name: str, began: Time) -> StateError:
        return StateError(
            f"{model} has read {name} up to {format_time(last)}, but what is stored of {name} ends at "
            f"{format_time(began)}: it has lost its newest commits",
            f"Restore {self._storage.collection(name).uri} from a backup. Or build it anew: of a model, "
            f"`dbt run --full-refresh --select {name.split('.')[-1]}+`; of a source, remove that folder, and it is "
            "taken in anew.",
        )
