"""Relations and tables that runs without a session have left to the next one: small files beside the metastore.

Only processes of ours open the metastore under a state root, so nobody reads what it shows before they are made. A
file that is lost costs nothing: the next run of its model or seed notes it again.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from urllib.parse import quote, unquote
from uuid import uuid4

_RELATION, _SCHEMA, _TABLE = "relation.", "schema.", "table."
_PARTS = re.compile(r"`((?:[^`]|``)+)`|(\w+)")


class DueRelations:
    """``folder``: where the files are. Threads and processes may share it."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._known: dict[str, str] | None = None

    def __bool__(self) -> bool:
        return bool(self._files)

    @property
    def notes(self) -> Mapping[str, str]:
        """Collections with what is noted of each: JSON whose ``relation`` is the name in SQL."""
        return {name.removeprefix(_RELATION): note for name, note in self._files if name.startswith(_RELATION)}

    @property
    def tables(self) -> Mapping[str, str]:
        """Tables that have to be made, by names in lower case without quotes, with what is noted of each."""
        return {name.removeprefix(_TABLE): note for name, note in self._files if name.startswith(_TABLE)}

    @property
    def schemas(self) -> frozenset[str]:
        """Schemas that have to be made."""
        return frozenset(name.removeprefix(_SCHEMA) for name, _ in self._files if name.startswith(_SCHEMA))

    def views(self, schema: str) -> frozenset[str]:
        """The views that have to be made in a schema, without those of changes; in lower case."""
        names = (parts_of(json.loads(note)["relation"]) for note in self.notes.values())
        return frozenset(name for *of, name in names if tuple(of) == parts_of(schema))

    def keep(self, collection: str, note: str) -> None:
        """Notes a collection, or something else of it."""
        self._write(_RELATION + collection, note)

    def keep_schema(self, schema: str) -> None:
        """Notes a schema."""
        self._write(_SCHEMA + schema.lower(), "")

    def keep_table(self, name: str, note: str) -> None:
        """Notes a table, or another one of that name."""
        self._write(_TABLE + name, note)

    def drop_table(self, name: str, note: str) -> None:
        """The table of that note was made; one that was noted since stays."""
        self.read_again()
        if self.tables.get(name) == note:
            self._remove(_TABLE + name)

    def drop(self, collection: str) -> None:
        """The collection's relations were made."""
        self._remove(_RELATION + collection)

    def drop_schema(self, schema: str) -> None:
        """The schema was made."""
        self._remove(_SCHEMA + schema)

    def read_again(self) -> None:
        """Other processes may have noted more."""
        with self._lock:
            self._known = None

    @property
    def _files(self) -> list[tuple[str, str]]:
        with self._lock:
            if self._known is None:
                self._known = dict(self._read())
            return list(self._known.items())

    def _read(self) -> Iterator[tuple[str, str]]:
        with suppress(FileNotFoundError):
            for file in sorted(os.listdir(self._folder)):
                if not file.startswith("."):
                    with suppress(FileNotFoundError), open(f"{self._folder}/{file}", encoding="utf-8") as stream:
                        yield unquote(file), stream.read()

    def _write(self, name: str, text: str) -> None:
        if (name, text) in self._files:
            return
        os.makedirs(self._folder, exist_ok=True)
        made = f"{self._folder}/.{uuid4().hex}"
        with open(made, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(made, self._path(name))
        with self._lock:
            if self._known is not None:
                self._known[name] = text

    def _remove(self, name: str) -> None:
        if name not in dict(self._files):
            return
        with suppress(FileNotFoundError):
            os.remove(self._path(name))
        with self._lock:
            if self._known is not None:
                self._known.pop(name, None)

    def _path(self, name: str) -> str:
        return f"{self._folder}/{quote(name, safe='')}"


def parts_of(relation: str) -> tuple[str, ...]:
    """The parts of a relation's name, or a schema's, in lower case and without quotes."""
    return tuple((quoted.replace("``", "`") or plain).lower() for quoted, plain in _PARTS.findall(relation))
