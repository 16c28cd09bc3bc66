"""A collection's rows in a table of PostgreSQL, kept by what changes, exactly once.

Each batch is one transaction, which also notes the time up to which the table is written. Who reads the table always
sees the collection as of one time. A second publisher of the same table ends the first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.errors import ConfigError, FrontierError, SinkError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.schema import TIME
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.core.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    NESTED,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    Type,
)
from dbt_incremental_dd.sinks.events import changes
from dbt_incremental_dd.sinks.following import follow, require_key, resumed
from dbt_incremental_dd.sinks.postgres_table import PostgresTable, Progress, Row
from dbt_incremental_dd.sinks.wanted import Wanted
from dbt_incremental_dd.sources.connectors.postgres.connection import PostgresError, connected, parameters
from dbt_incremental_dd.subscribe.json_values import json_rows
from dbt_incremental_dd.subscribe.subscription import Batch, Start, Subscription

if TYPE_CHECKING:
    import pyarrow as pa

    from dbt_incremental_dd.sinks.postgres_table import Connection

_TYPES: dict[Type, str] = {
    BOOLEAN: "boolean",
    BYTE: "smallint",
    SHORT: "smallint",
    INTEGER: "integer",
    LONG: "bigint",
    FLOAT: "real",
    DOUBLE: "double precision",
    STRING: "text",
    BINARY: "bytea",
    DATE: "date",
    TIMESTAMP: "timestamptz",
    TIMESTAMP_NTZ: "timestamp",
}


@dataclass(frozen=True)
class Sink:
    """``table``: with its schema, if that is not the first of the search path. ``key``: columns each of whose values
    has one row. ``url``: as libpq takes it."""

    table: str
    key: tuple[str, ...]
    url: str = field(repr=False)


def sink_of(wanted: Wanted) -> Sink:
    """Raises ConfigError for settings that mean nothing to it, and options other than ``url``."""
    wanted.require_only("table", "key", "options")
    if set(wanted.options) != {"url"}:
        raise ConfigError(
            f"publishing to table {wanted.target} takes the option url, not {', '.join(wanted.options) or 'none'}",
            "Write --option url=postgresql://user@host:port/database. A password may be in PGPASSWORD or ~/.pgpass.",
        )
    return Sink(wanted.target, wanted.key, wanted.options["url"])


def publish(collection: Collection, sink: Sink, *, once: bool = False, ended: Event | None = None) -> None:
    """Writes the rows, and then each change as it comes, until ``ended``, unless ``once``; goes on from where the table
    is. A missing table is created. Where it has been dropped, or the history that it lacks is gone, all rows are
    written anew.

    Raises ConfigError for invalid settings, SinkError if the server fails or refuses: then the table is as of a former
    time, and calling it again continues from there.
    """
    require_key(collection, sink.key)
    try:
        with connected(sink.url) as connection:
            publisher = _Publisher(collection, sink, connection)
            follow(publisher.subscription(), publisher.write, once=once, ended=ended)
    except PostgresError as error:
        raise SinkError(
            f"{collection.name} cannot be published to table {sink.table}: {error.message}",
            f"{error.remedy} Start it again: it goes on where it was.",
        ) from error


class _Publisher:
    def __init__(self, collection: Collection, sink: Sink, connection: Connection) -> None:
        self._collection = collection
        self._sink = sink
        self._connection = connection
        columns = {column.name: _type_of(collection, column.name, column.type) for column in collection.schema}
        self._table = PostgresTable(connection, tuple(sink.table.split(".")), columns, sink.key)
        self._progress = Progress(self._table, collection.name, sink.table)
        self._nested = [column.name for column in collection.schema if isinstance(column.type, NESTED)]
        self._is_replaced = False
        """Whether what is written next are all rows, in place of what the table has."""
        self._at = self._prepare()

    def subscription(self) -> Subscription:
        """One that goes on where the table is."""
        server = parameters(self._sink.url)
        where = " ".join(str(server.get(part) or "") for part in ("host", "port", "dbname"))
        name = f"postgres {where} {self._sink.table}"
        if not self._is_replaced:
            try:
                return resumed(self._collection, name, self._at)
            except FrontierError:
                self._is_replaced = True
        return Subscription(self._collection.place, Start(as_of=self._collection.frontiers.last), name=name)

    def write(self, batch: Batch) -> None:
        """One transaction: the keys' last rows in the batch, and its time."""
        is_whole = batch.after is None
        if not is_whole and not batch.updates.num_rows:
            return
        new = self._rows(batch)
        with self._connection.transaction():
            if not self._progress.advance(self._at, batch.timestamp):
                raise SinkError(
                    f"another publisher writes {self._collection.name} to table {self._sink.table}",
                    "One is enough: this one has stopped.",
                )
            if is_whole and self._is_replaced:
                self._table.clear()
            else:
                self._table.delete([key for key, row in new.items() if row is None])
            self._table.upsert([row for row in new.values() if row is not None])
            reached("publish: sent")
        reached("publish: committed")
        self._at, self._is_replaced = batch.timestamp, False

    def _prepare(self) -> Time | None:
        """Up to when the table is written; None where it never was. Raises ConfigError for a table that does not fit,
        SinkError for one that holds other rows."""
        with self._connection.transaction():
            self._progress.create()
            is_missing = self._table.create()
            missing = self._table.missing_columns()
            if missing:
                raise ConfigError(
                    f"table {self._sink.table} has no column {missing[0]}, and {self._collection.name} has",
                    f"Add it, as {self._table.columns[missing[0]]}; or drop the table, and it is written anew.",
                )
            t = self._progress.time()
            if t is None and self._table.has_rows():
                raise SinkError(
                    f"table {self._sink.table} has rows, and {self._collection.name} was never published to it",
                    "Empty it, or name another table.",
                )
        self._is_replaced = is_missing and t is not None
        return t

    def _rows(self, batch: Batch) -> dict[Row, Row | None]:
        """Each key's last row in the batch; None where it goes. Raises ConfigError where a key has several rows at a
        time, or is NULL."""
        last: dict[Row, Row | None] = {}
        columns = self._table.columns
        for one in batch.times():
            for change in changes(self._collection.name, self._values(one.updates), one.timestamp, self._sink.key):
                row = change.after
                last[tuple(change.key.values())] = None if row is None else tuple(row[name] for name in columns)
        return last

    def _values(self, updates: pa.Table) -> Iterator[dict[str, Any]]:
        """Rows with their diffs; nested values are JSON."""
        table = updates.drop_columns([TIME])
        nested = [json_rows(table.select(self._nested))] if self._nested else []
        for row, *others in zip(table.to_pylist(), *nested, strict=True):
            for other in others:
                row |= {name: None if value is None else json.dumps(value) for name, value in other.items()}
            yield row


def _type_of(collection: Collection, name: str, kind: Type) -> str:
    if isinstance(kind, Decimal):
        return f"numeric({kind.precision}, {kind.scale})"
    if isinstance(kind, NESTED):
        return "jsonb"
    found = _TYPES.get(kind)
    if found is None:
        raise ConfigError(
            f"{collection.name}: column {name} is of type {kind}, for which PostgreSQL has none",
            "Cast it to STRING in a model, and publish that.",
        )
    return found
