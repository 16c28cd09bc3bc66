"""A collection's rows in a table of PostgreSQL, kept by what changes, exactly once.

Each batch is one transaction, which also notes the time up to which the table is written. Who reads the table always
sees the collection as of one time. A second publisher of the same table ends the first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
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
from dbt_incremental_dd.sinks.wanted import Wanted
from dbt_incremental_dd.sources.connectors.postgres.connection import PostgresError, connected, parameters
from dbt_incremental_dd.subscribe.json_values import json_rows
from dbt_incremental_dd.subscribe.subscription import Batch, Start, Subscription

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa

    Connection = psycopg.Connection[Any]

PROGRESS = "dbt_dd_progress"
"""The table, in the target's schema, in which publishers note up to when theirs are written."""
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
Row = tuple[Any, ...]


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
        self._target = tuple(sink.table.split("."))
        self._columns = {column.name: _type_of(collection, column.name, column.type) for column in collection.schema}
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
            self._advance(batch.timestamp)
            if is_whole and self._is_replaced:
                self._execute("DELETE FROM {}", self._name)
            else:
                self._delete([key for key, row in new.items() if row is None])
            self._upsert([row for row in new.values() if row is not None])
            reached("publish: sent")
        reached("publish: committed")
        self._at, self._is_replaced = batch.timestamp, False

    # The table

    def _prepare(self) -> Time | None:
        """Up to when the table is written; None where it never was. Raises ConfigError for a table that does not fit,
        SinkError for one that holds other rows."""
        from psycopg import sql

        columns = [sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind)) for name, kind in self._columns.items()]
        key = sql.SQL("PRIMARY KEY ({})").format(_listed(self._sink.key))
        with self._connection.transaction():
            self._execute(
                "CREATE TABLE IF NOT EXISTS {} (collection text, target text, time bigint, "
                "PRIMARY KEY (collection, target))",
                self._progress,
            )
            name = self._name.as_string(self._connection)
            is_missing = self._execute("SELECT to_regclass(%s)", values=[name]).fetchone()[0] is None
            self._execute("CREATE TABLE IF NOT EXISTS {} ({})", self._name, sql.SQL(", ").join([*columns, key]))
            self._require_columns()
            row = self._execute(
                "SELECT time FROM {} WHERE collection = %s AND target = %s", self._progress, values=self._mark
            ).fetchone()
            if row is None and self._execute("SELECT 1 FROM {} LIMIT 1", self._name).fetchone() is not None:
                raise SinkError(
                    f"table {self._sink.table} has rows, and {self._collection.name} was never published to it",
                    "Empty it, or name another table.",
                )
        self._is_replaced = is_missing and row is not None
        return None if row is None else int(row[0])

    def _require_columns(self) -> None:
        found = {column.name for column in self._execute("SELECT * FROM {} LIMIT 0", self._name).description or ()}
        missing = [name for name in self._columns if name not in found]
        if missing:
            raise ConfigError(
                f"table {self._sink.table} has no column {missing[0]}, and {self._collection.name} has",
                f"Add it, as {self._columns[missing[0]]}; or drop the table, and it is written anew.",
            )

    def _advance(self, t: Time) -> None:
        """Notes the time. Raises SinkError where another publisher has done so."""
        values = (t, *self._mark, self._at)
        if self._at is None:
            statement = "INSERT INTO {} (time, collection, target) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
            done = self._execute(statement, self._progress, values=values[:3])
        else:
            statement = "UPDATE {} SET time = %s WHERE collection = %s AND target = %s AND time = %s"
            done = self._execute(statement, self._progress, values=values)
        if done.rowcount != 1:
            raise SinkError(
                f"another publisher writes {self._collection.name} to table {self._sink.table}",
                "One is enough: this one has stopped.",
            )

    def _delete(self, keys: Sequence[Row]) -> None:
        from psycopg import sql

        if keys:
            self._stage("dd_gone", self._sink.key, keys)
            same = sql.SQL(" AND ").join(
                sql.SQL("t.{0} = g.{0}").format(sql.Identifier(name)) for name in self._sink.key
            )
            self._execute("DELETE FROM {} t USING dd_gone g WHERE {}", self._name, same)

    def _upsert(self, rows: Sequence[Row]) -> None:
        from psycopg import sql

        if not rows:
            return
        self._stage("dd_come", list(self._columns), rows)
        others = [sql.Identifier(name) for name in self._columns if name not in self._sink.key]
        assign = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(name) for name in others)
        conflict = sql.SQL("DO UPDATE SET {}").format(assign) if others else sql.SQL("DO NOTHING")
        listed = _listed(self._columns)
        self._execute(
            "INSERT INTO {} ({}) SELECT {} FROM dd_come ON CONFLICT ({}) {}",
            self._name,
            listed,
            listed,
            _listed(self._sink.key),
            conflict,
        )

    def _stage(self, name: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """The rows in a table of this transaction, of the target's types."""
        from psycopg import sql

        listed = _listed(columns)
        self._execute(
            "CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {} FROM {} LIMIT 0",
            sql.Identifier(name),
            listed,
            self._name,
        )
        copy = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(name), listed)
        with self._connection.cursor() as cursor, cursor.copy(copy) as into:
            for row in rows:
                into.write_row(row)

    def _execute(self, statement: str, *parts: Any, values: Sequence[Any] = ()) -> Any:
        from psycopg import sql

        return self._connection.execute(sql.SQL(statement).format(*parts), values or None)

    @property
    def _name(self) -> Any:
        from psycopg import sql

        return sql.Identifier(*self._target)

    @property
    def _progress(self) -> Any:
        from psycopg import sql

        return sql.Identifier(*self._target[:-1], PROGRESS)

    @property
    def _mark(self) -> tuple[str, str]:
        return self._collection.name, self._sink.table

    # The rows

    def _rows(self, batch: Batch) -> dict[Row, Row | None]:
        """Each key's last row in the batch; None where it goes. Raises ConfigError where a key has several rows at a
        time, or is NULL."""
        last: dict[Row, Row | None] = {}
        for one in batch.times():
            for change in changes(self._collection.name, self._values(one.updates), one.timestamp, self._sink.key):
                row = change.after
                last[tuple(change.key.values())] = None if row is None else tuple(row[name] for name in self._columns)
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


def _listed(names: Iterable[str]) -> Any:
    from psycopg import sql

    return sql.SQL(", ").join(map(sql.Identifier, names))
