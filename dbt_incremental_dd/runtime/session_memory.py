"""What the last session of a project said, kept so that a run needs none: ``session.json`` in the state root.

It holds for sessions of the same configuration in this process's own JVM. Settings, functions and constants follow
from the configuration. The catalog is Derby's, which writes to its log whenever a session opens it: as long as these
files are what they were when our last session ended, nobody has opened it since.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.local.value import Value
from dbt_incremental_dd.relation.due import DueRelations, parts_of
from dbt_incremental_dd.relation.lazy_session import Dialect, SessionMemory, functions_of, settings_of
from dbt_incremental_dd.runtime.constant_form import constant_form, constant_key, constant_of
from dbt_incremental_dd.runtime.metastore_state import contents, stamp_of
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.version import version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILE = "session.json"
_MOST_CONSTANTS = 2_000
_MOST_COMMANDS = 100


class StoredMemory(SessionMemory):
    """Of one state root. ``metastore``: the folder of Derby's files; None if the catalog is another one, of which
    nothing is known without a session. ``expected``: the settings that the configuration implies, if it implies all of
    them. ``due``: if it is only our own sessions that open the metastore. ``is_shared``: whether other processes may
    use the session as well. Threads may share it."""

    def __init__(
        self,
        storage: Storage,
        configuration: Mapping[str, object],
        metastore: str | None,
        expected: Mapping[str, str] | None = None,
        due: DueRelations | None = None,
        *,
        is_shared: bool = False,
    ) -> None:
        text = json.dumps([version, {key: str(value) for key, value in sorted(configuration.items())}])
        self._storage = storage
        self._configured = configuration
        self._configuration = hashlib.sha256(text.encode()).hexdigest()
        self._metastore = metastore
        self._expected = expected or {}
        self._due = due
        self._lock = threading.RLock()
        self._known: dict[str, Any] | None = None
        self._is_new = False
        self._is_shared = is_shared
        self._opened: str | None = None
        """How the catalog's files were when the session was opened, or when it was last looked at."""
        self._look: Callable[[], None] = lambda: None
        """Notes how the catalog is left."""
        self._before: dict[str, Any] = {}
        self._asked: set[str] = set()
        """Commands of this process that had statements."""
        self._used: set[str] = set()
        """The schemas of which the project has relations."""
        self._seen: dict[str, Any] = {}
        """What this process's session has found in the catalog, or has made there."""

    @property
    def settings(self) -> Mapping[str, str]:
        found: dict[str, str] = self._found.get("settings", {})
        return found or self._expected

    def configured(self, name: str) -> str:
        return str(self._configured.get(name, ""))

    @property
    def functions(self) -> frozenset[str]:
        return frozenset(self._found.get("functions", ()))

    @property
    def schemas(self) -> tuple[str, ...]:
        known = ("default",) if self._is_unmade else self._certain.get("schemas", ())
        return tuple(sorted({*known, *(self._due.schemas if self._due is not None else ())})) if known else ()

    def views(self, schema: str) -> frozenset[str] | None:
        schema = ".".join(parts_of(schema))
        views = () if self._is_unmade else self._certain.get("views", {}).get(schema)
        return None if views is None else frozenset(views) | self._due_views(schema)

    def relation_type(self, schema: str, name: str) -> str | None:
        views = self.views(schema)
        if views is not None and name in views:
            return "view"
        schema = ".".join(parts_of(schema))
        if self._is_due(schema, name):
            return "table"
        names = () if self._is_unmade else self._certain.get("names", {}).get(schema)
        if names is None:
            self._used.add(schema)  # whoever opens a session looks at it
            is_known = "." not in schema and bool(self.schemas)  # those of another catalog are not
            return "" if is_known and schema not in self.schemas else None
        return "" if name not in names else None

    def _due_views(self, schema: str) -> frozenset[str]:
        return self._due.views(schema) if self._due is not None else frozenset()

    def _is_due(self, schema: str, name: str) -> bool:
        return self._due is not None and f"{schema}.{name}" in self._due.tables

    @property
    def due(self) -> DueRelations | None:
        return self._due

    @property
    def _is_unmade(self) -> bool:
        """Whether there is no catalog yet, so that nothing is in it."""
        return self._due is not None and not os.path.exists(str(self._metastore))

    def has_table(self, relation: str) -> bool:
        return relation.lower() in self._certain.get("tables", ())

    @property
    def follows_catalog(self) -> bool:
        return self._metastore is not None

    def is_table(self, schema: str, name: str) -> bool:
        schema, name = ".".join(parts_of(schema)), name.lower()
        if self._is_due(schema, name):
            return True
        known = self._certain
        return name in known.get("names", {}).get(schema, ()) and name not in known.get("views", {}).get(
            schema, (name,)
        )

    @property
    def _certain(self) -> dict[str, Any]:
        """What the catalog holds; nothing where somebody has opened it since that was noted."""
        with self._lock:
            found: dict[str, Any] = self._found.get("catalog") or {}
            return found if found and found["stamp"] == stamp_of(self._metastore) else {}

    def constant(self, dialect: Dialect, sql: str) -> Value | None:
        text = self._found.get("constants", {}).get(constant_key(dialect, sql))
        return None if text is None else constant_of(text)

    def keep_constant(self, dialect: Dialect, sql: str, value: Value) -> None:
        with self._lock:
            known, key = self._found.setdefault("constants", {}), constant_key(dialect, sql)
            if key in known:
                return
            while len(known) >= _MOST_CONSTANTS:
                del known[next(iter(known))]
            known[key] = constant_form(value)
            self._is_new = True

    @property
    def opening(self) -> float:
        return float(self._found.get("opening", 0.0))

    def before_opening(self) -> None:
        with self._lock:
            self._before = self._certain

    def keep(self, spark: SparkSession, opening: float) -> None:
        with self._lock:
            self._opened = stamp_of(self._metastore)
            # Another process of the project may have had the catalog after the look at it, or may have it now.
            is_same = self._read().get("catalog") == self._before
            is_same &= not self._is_shared or self._before.get("stamp") == self._opened
            self._seen = {key: value for key, value in self._before.items() if is_same and key != "stamp"}
            self._used.update(self._seen.get("names", ()))
            said = {"settings": settings_of(spark), "functions": sorted(functions_of(spark))}
            self._found.update({**said, "catalog": None, "opening": round(opening, 1)})
            self._is_new = True
            self.save()
        if self._metastore is None:
            return
        if self._is_shared:  # Spark Connect answers nothing while Python ends
            self._look = lambda: self._note(spark)
        else:
            atexit.register(self._note, spark)

    def keep_schemas(self, schemas: Iterable[str]) -> None:
        with self._lock:
            self._seen["schemas"] = sorted({schema.lower() for schema in schemas})

    def keep_schema(self, schema: str) -> None:
        with self._lock:
            self._used.add(".".join(parts_of(schema)))
            if "schemas" in self._seen:
                self.keep_schemas((*self._seen["schemas"], schema))

    def keep_views(self, schema: str, views: Iterable[str]) -> None:
        with self._lock:
            self._used.add(".".join(parts_of(schema)))
            self._seen["views"] = {**self._seen.get("views", {}), ".".join(parts_of(schema)): sorted(views)}

    def keep_view(self, schema: str, name: str, *, is_there: bool) -> None:
        with self._lock:
            views = self._seen.get("views", {}).get(".".join(parts_of(schema)))
            if views is not None:
                self.keep_views(schema, {*views, name} if is_there else {*views} - {name})
            self._seen.pop("names", None)

    def keep_table(self, relation: str) -> None:
        with self._lock:
            self._seen["tables"] = sorted({*self._seen.get("tables", ()), relation.lower()})

    def doubt(self) -> None:
        with self._lock:
            self._seen = {}

    def has_statements(self, command: str) -> bool:
        return command in self._found.get("commands", ())

    def note_statement(self, command: str) -> None:
        self._asked.add(command)

    def keep_statements(self, command: str) -> None:
        with self._lock:
            known: list[str] = self._found.get("commands", [])
            are_there = command in self._asked
            if (command in known) == are_there:
                return
            others = [other for other in known if other != command]
            self._found["commands"] = [*others, command][-_MOST_COMMANDS:] if are_there else others
            self._is_new = True
            self.save()

    def save(self) -> None:
        with self._lock:
            if self._is_new:
                self._storage.write_small(_FILE, json.dumps(self._found))
                self._is_new = False

    def leave(self) -> None:
        self._look()

    def _note(self, spark: SparkSession) -> None:
        """Nobody else can have opened the catalog while this process had it, but by a session that they share. Then
        what was seen counts if nobody has changed anything since, and the catalog is looked at if somebody has."""
        if self._storage.is_local and not os.path.isdir(self._storage.root):
            return
        with self._lock, contextlib.suppress(Exception):  # the session may have ended
            before = stamp_of(self._metastore)
            if self._is_shared and before != self._opened:
                self._seen = {}
            if "names" not in self._seen:
                self._seen = {**self._seen, **contents(spark, self._used)}
            stamp = stamp_of(self._metastore)
            is_certain = not self._is_shared or stamp == before
            self._found["catalog"], self._is_new = {**self._seen, "stamp": stamp} if is_certain else None, True
            self._opened = stamp if is_certain else None
            self.save()

    @property
    def _found(self) -> dict[str, Any]:
        with self._lock:
            if self._known is None:
                self._known = self._read()
            return self._known

    def _read(self) -> dict[str, Any]:
        empty: dict[str, Any] = {"configuration": self._configuration}
        try:
            found = json.loads(self._storage.read_small(_FILE) or "{}")
            is_ours = isinstance(found, dict) and found.get("configuration") == self._configuration
            return found if is_ours else empty
        except ValueError:
            return empty
