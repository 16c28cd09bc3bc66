"""The versions of tables that this process has written last: the next change continues from them without reading."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from dbt_incremental_dd.open_table.table import TableVersion
from dbt_incremental_dd.trace.layout import Storage

V = TypeVar("V", bound=TableVersion)


class LastWritten(Generic[V]):
    """Of tables of one format. ``mark``: what tells the file that makes a version the table's from any other one; None
    where it is gone, or no longer the last."""

    def __init__(self, mark: Callable[[Storage, V], str | None]) -> None:
        self._mark = mark
        self._known: dict[str, tuple[V, str]] = {}

    def of(self, storage: Storage, uri: str) -> V | None:
        """The version of the table in a folder; None where this process has written none, or it is no longer the
        table's."""
        known = self._known.get(uri)
        return known[0] if known is not None and self._mark(storage, known[0]) == known[1] else None

    def note(self, storage: Storage, version: V) -> None:
        """The version has just been written."""
        mark = self._mark(storage, version)
        if mark is None:
            self._known.pop(version.uri, None)
        else:
            self._known[version.uri] = version, mark

    def clear(self) -> None:
        """None is known, as in a new process."""
        self._known.clear()
