"""One client's SELECTs over collections. All that a statement reads, it reads as of one time."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from dbt_incremental_dd.core.errors import QueryError, StateError
from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.query.as_of import split_as_of
from dbt_incremental_dd.query.relation import contents_sql, empty_sql
from dbt_incremental_dd.query.types import identifier, literal, relation_name
from dbt_incremental_dd.trace.layout import Place, Storage
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.manifest import columns_of
from dbt_incremental_dd.trace.stored import contents, log_of

BATCH = 10_000
"""Rows that are brought at a time."""
_HELD = "dd_held"
"""Where collections are that are not on a local disk, as long as the session lasts."""


@dataclass(frozen=True)
class Answer:
    """What a statement gives; ``as_of`` is None where it reads no collection."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    as_of: Time | None


class Session:
    """A DuckDB of its own, in memory, in which each collection is a view ``schema.identifier``. It reads no other file,
    and writes none. For one statement at a time; ``interrupt`` may come from another thread."""

    def __init__(self, storage: Storage) -> None:
        root = storage.root if not storage.is_local else os.path.abspath(storage.root)
        self._storage = Storage(root, storage.options)
        config: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": False,
            "TimeZone": "UTC",
        }
        self._connection = duckdb.connect(":memory:", config=config)
        self._running: duckdb.DuckDBPyConnection | None = None
        self._shown: dict[str, str] = {}
        self._lock = threading.RLock()
        if storage.is_local:
            self._connection.execute(f"SET allowed_directories = [{literal(root + '/collections/')}]")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def close(self) -> None:
        """Ends it."""
        self._connection.close()

    def interrupt(self) -> None:
        """Ends the statement that was begun last, with an error; one that has ended is left alone."""
        running = self._running
        if running is not None:
            with contextlib.suppress(duckdb.ConnectionException):
                running.interrupt()

    def select(self, sql: str, parameters: Sequence[Any] = (), as_of: Time | None = None) -> Answer:
        """One SELECT, read as of ``as_of``, or what it says itself, or the latest time that is final in all it reads.

        Raises QueryError where DuckDB refuses it; FrontierError where a collection cannot be read at that time.
        """
        text, told = split_as_of(sql)
        with self._lock:
            names = self.collections_of(text)
            t = self._place_views(names, told if told is not None else as_of)
            cursor = self._running = self._connection.cursor()
            try:
                reader = cursor.sql(text, params=list(parameters) or None).fetch_record_batch(BATCH)
            except duckdb.Error as error:
                cursor.close()
                raise _refused(error) from error
        return Answer(reader.schema, _batches(reader, cursor), t)

    def collections_of(self, sql: str) -> tuple[str, ...]:
        """The collections that a SELECT names. Raises QueryError for anything but one SELECT."""
        told = self._connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()
        tree = json.loads(told[0][0])
        if tree.get("error"):
            if "Only SELECT" in str(tree.get("error_message")):
                raise QueryError("only SELECT and SUBSCRIBE are answered: models are written by `dbt run` alone")
            raise QueryError(str(tree.get("error_message")))
        if len(tree["statements"]) != 1:
            raise QueryError("one statement at a time is answered")
        known = self._refresh()
        wanted = []
        for schema, table in _tables(tree):
            matching = [n for n in known if _is(n, schema, table)]
            if not schema and len(matching) > 1:
                raise QueryError(f"{table} may be any of {', '.join(matching)}", "Give its full name.")
            wanted += matching
        return tuple(dict.fromkeys(wanted))

    def _refresh(self) -> dict[str, Place]:
        """Every collection is in the catalog, with its columns; those that are gone are not."""
        known = {place.name: place for place in self._storage.collections()}
        for name in [name for name in self._shown if name not in known]:
            del self._shown[name]
            self._connection.execute(f"DROP VIEW IF EXISTS {relation_name(name)}")
            self._show_alone(name.rpartition(".")[2])
        for name, place in known.items():
            # What is damaged says so to whoever reads it, and to nobody else.
            with contextlib.suppress(StateError):
                if name not in self._shown and (log := place.log()) is not None:
                    self._show(name, empty_sql(columns_of(place, log)))
        return known

    def _show(self, name: str, sql: str) -> None:
        """The view of a collection reads this."""
        if self._shown.get(name) == sql:
            return
        schema, _, table = name.rpartition(".")
        if schema:
            self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {identifier(schema)}")
        self._connection.execute(f"CREATE OR REPLACE VIEW {relation_name(name)} AS {sql}")
        self._shown[name] = sql
        self._show_alone(table)

    def _show_alone(self, table: str) -> None:
        """A collection is found by the last part of its name where no other has the same."""
        having = [name for name in self._shown if name.rpartition(".")[2] == table]
        if len(having) == 1 and "." in having[0]:
            self._connection.execute(
                f"CREATE OR REPLACE VIEW main.{identifier(table)} AS FROM {relation_name(having[0])}"
            )
        elif table not in having:
            self._connection.execute(f"DROP VIEW IF EXISTS main.{identifier(table)}")

    def _place_views(self, names: Sequence[str], as_of: Time | None) -> Time | None:
        """The views of these collections read them all as of one time, which is returned."""
        logs = {name: log_of(self._storage.collection(name)) for name in names}
        if not logs:
            return as_of
        t = min(log.frontiers.last for log in logs.values()) if as_of is None else as_of
        for name, log in logs.items():
            log.frontiers.require(t, name)
        for name, log in logs.items():
            place = self._storage.collection(name)
            self._show(name, self._contents(place, log, t))
        return t

    def _contents(self, place: Place, log: Log, t: Time) -> str:
        schema = columns_of(place, log)
        if self._storage.is_local:
            return contents_sql(log, schema, t)
        # DuckDB reads local files only, unless what reads others is fetched from outside.
        held, counted = f"{_HELD}.{identifier(place.name)}", contents(place, t)
        self._connection.register(_HELD, counted)
        self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_HELD}")
        self._connection.execute(f"CREATE OR REPLACE TABLE {held} AS FROM {_HELD}")
        self._connection.unregister(_HELD)
        names = ", ".join(identifier(name) for name in schema.names)
        return f"SELECT {names} FROM {held} AS held, LATERAL (SELECT unnest(range(held.{DIFF})))"


def _batches(reader: pa.RecordBatchReader, cursor: duckdb.DuckDBPyConnection) -> Iterator[pa.RecordBatch]:
    try:
        yield from reader
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise _refused(error) from error
    finally:
        cursor.close()


def _tables(tree: Any) -> Iterator[tuple[str, str]]:
    """Schema and name of each table that a statement names."""
    if isinstance(tree, dict):
        if tree.get("type") == "BASE_TABLE":
            yield str(tree.get("schema_name", "")).lower(), str(tree.get("table_name", "")).lower()
        for value in tree.values():
            yield from _tables(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _tables(value)


def _is(name: str, schema: str, table: str) -> bool:
    own, _, last = name.rpartition(".")
    return last == table and (not schema or own == schema)


def _refused(error: Exception) -> QueryError:
    return QueryError(str(error).strip())
