"""A table of PostgreSQL that is kept by key, and the table beside it that notes up to when it is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.core.time import Time

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

PROGRESS = "dbt_dd_progress"
"""The table, in the target's schema, in which publishers note up to when theirs are written."""
Row = tuple[Any, ...]


class PostgresTable:
    """``name``: its parts. ``columns``: their types, by name. ``key``: columns each of whose values has one row."""

    def __init__(
        self, connection: Connection, name: Sequence[str], columns: Mapping[str, str], key: Sequence[str]
    ) -> None:
        self._connection = connection
        self.name = tuple(name)
        self.columns = columns
        self._key = key

    def create(self) -> bool:
        """Creates it unless it is there. Returns whether it was missing."""
        from psycopg import sql

        columns = [sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind)) for name, kind in self.columns.items()]
        key = sql.SQL("PRIMARY KEY ({})").format(_listed(self._key))
        name = self._own.as_string(self._connection)
        is_missing = self.execute("SELECT to_regclass(%s)", values=[name]).fetchone()[0] is None
        self.execute("CREATE TABLE IF NOT EXISTS {} ({})", self._own, sql.SQL(", ").join([*columns, key]))
        return is_missing

    def missing_columns(self) -> list[str]:
        """Those that it should have, and has not."""
        found = {column.name for column in self.execute("SELECT * FROM {} LIMIT 0", self._own).description or ()}
        return [name for name in self.columns if name not in found]

    def has_rows(self) -> bool:
        """Whether there is any."""
        return self.execute("SELECT 1 FROM {} LIMIT 1", self._own).fetchone() is not None

    def clear(self) -> None:
        """Deletes all rows."""
        self.execute("DELETE FROM {}", self._own)

    def delete(self, keys: Sequence[Row]) -> None:
        """Deletes the rows of these keys."""
        from psycopg import sql

        if keys:
            self._stage("dd_gone", self._key, keys)
            same = sql.SQL(" AND ").join(sql.SQL("t.{0} = g.{0}").format(sql.Identifier(name)) for name in self._key)
            self.execute("DELETE FROM {} t USING dd_gone g WHERE {}", self._own, same)

    def upsert(self, rows: Sequence[Row]) -> None:
        """Inserts the rows, in place of those of the same keys."""
        from psycopg import sql

        if not rows:
            return
        self._stage("dd_come", list(self.columns), rows)
        others = [sql.Identifier(name) for name in self.columns if name not in self._key]
        assign = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(name) for name in others)
        conflict = sql.SQL("DO UPDATE SET {}").format(assign) if others else sql.SQL("DO NOTHING")
        listed = _listed(self.columns)
        self.execute(
            "INSERT INTO {} ({}) SELECT {} FROM dd_come ON CONFLICT ({}) {}",
            self._own,
            listed,
            listed,
            _listed(self._key),
            conflict,
        )

    def _stage(self, name: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """The rows in a table of this transaction, of the target's types."""
        from psycopg import sql

        listed = _listed(columns)
        self.execute(
            "CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {} FROM {} LIMIT 0",
            sql.Identifier(name),
            listed,
            self._own,
        )
        copy = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(name), listed)
        with self._connection.cursor() as cursor, cursor.copy(copy) as into:
            for row in rows:
                into.write_row(row)

    def execute(self, statement: str, *parts: Any, values: Sequence[Any] = ()) -> Any:
        """A statement on its connection. ``parts``: of SQL, for its braces."""
        from psycopg import sql

        return self._connection.execute(sql.SQL(statement).format(*parts), values or None)

    @property
    def _own(self) -> Any:
        from psycopg import sql

        return sql.Identifier(*self.name)


class Progress:
    """Up to when a collection is written to a table."""

    def __init__(self, table: PostgresTable, collection: str, target: str) -> None:
        self._table = table
        self._mark = collection, target

    def create(self) -> None:
        """Creates the table unless it is there."""
        self._table.execute(
            "CREATE TABLE IF NOT EXISTS {} (collection text, target text, time bigint, "
            "PRIMARY KEY (collection, target))",
            self._name,
        )

    def time(self) -> Time | None:
        """The noted time; None where there is none."""
        statement = "SELECT time FROM {} WHERE collection = %s AND target = %s"
        row = self._table.execute(statement, self._name, values=self._mark).fetchone()
        return None if row is None else int(row[0])

    def advance(self, before: Time | None, t: Time) -> bool:
        """Notes the time. False where the one before is no longer that: another publisher has come first."""
        if before is None:
            statement = "INSERT INTO {} (time, collection, target) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
            done = self._table.execute(statement, self._name, values=(t, *self._mark))
        else:
            statement = "UPDATE {} SET time = %s WHERE collection = %s AND target = %s AND time = %s"
            done = self._table.execute(statement, self._name, values=(t, *self._mark, before))
        return bool(done.rowcount == 1)

    @property
    def _name(self) -> Any:
        from psycopg import sql

        return sql.Identifier(*self._table.name[:-1], PROGRESS)


def _listed(names: Iterable[str]) -> Any:
    from psycopg import sql

    return sql.SQL(", ").join(map(sql.Identifier, names))
