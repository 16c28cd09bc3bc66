"""What a table is: its columns, how its rows are identified, and all by which a change that the log does not tell of
can be noticed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.types import Type
from dbt_incremental_dd.sources.connectors.database_log.spool import texts
from dbt_incremental_dd.sources.connectors.database_log.table import LogTable, require_names
from dbt_incremental_dd.sources.connectors.postgres.connection import PostgresError
from dbt_incremental_dd.sources.connectors.postgres.spec import PostgresSpec
from dbt_incremental_dd.sources.connectors.postgres.types import converted, may_be, spark_type

if TYPE_CHECKING:
    from dbt_incremental_dd.sources.connectors.postgres.connection import Connection

_RELATION = """
SELECT c.oid::bigint, n.nspname, c.relname, c.relkind, c.relreplident, c.relpersistence,
has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)
"""
_COLUMNS = """
WITH RECURSIVE own AS (
    SELECT attnum, attname, atttypid::bigint AS type, atttypmod AS modifier, attribute.xmin::text AS changed
    FROM pg_attribute attribute
    WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
), base AS (
    SELECT attnum, type AS base, modifier FROM own
    UNION ALL
    SELECT b.attnum, t.typbasetype::bigint, t.typtypmod
    FROM base b JOIN pg_type t ON t.oid = b.base WHERE t.typtype = 'd'
)
SELECT o.attname, o.type, o.modifier, o.changed, t.typname, b.modifier, t.typnamespace = 'pg_catalog'::regnamespace
FROM own o JOIN base b USING (attnum) JOIN pg_type t ON t.oid = b.base WHERE t.typtype <> 'd' ORDER BY o.attnum
"""
_IDENTITY = """
SELECT a.attname, NOT a.attnotnull
FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = %s AND i.indisvalid AND i.indimmediate AND k.place <= i.indnkeyatts
AND CASE %s WHEN 'i' THEN i.indisreplident ELSE i.indisprimary END ORDER BY k.place
"""
_PARTITIONS = """
SELECT c.oid::bigint, c.relfilenode::bigint, c.relreplident, c.relkind, c.relpersistence, c.relname
FROM pg_partition_tree(%s) p JOIN pg_class c ON c.oid = p.relid WHERE p.isleaf ORDER BY 1
"""


@dataclass(frozen=True)
class TableColumn:
    """``base`` is its type by name, domains resolved; ``identity`` is different once the column has been altered."""

    name: str
    type: int
    modifier: int
    base: str
    spark: Type
    identity: str


@dataclass(frozen=True)
class PostgresTable(LogTable):
    """``key``: the replica identity's columns, none where whole rows identify; ``parts``: a partitioned table's leaves
    with their files."""

    oid: int
    schema: str
    name: str
    is_partitioned: bool
    columns: tuple[TableColumn, ...]
    key: tuple[str, ...]
    parts: tuple[tuple[int, int], ...]

    @property
    def sql(self) -> str:
        return f"{quote_identifier(self.schema)}.{quote_identifier(self.name)}"

    @property
    def shape(self) -> list[Any]:
        columns = [[column.name, column.type, column.modifier, column.identity] for column in self.columns]
        return [self.oid, columns, list(self.key), [list(part) for part in self.parts]]

    def arrays(self, columns: Sequence[Sequence[bytes | None]]) -> list[pa.ChunkedArray]:
        return self.typed([texts(values, column.name) for values, column in zip(columns, self.columns, strict=True)])

    def typed(self, columns: Sequence[pa.ChunkedArray]) -> list[pa.ChunkedArray]:
        """Columns of text in the table's types. Raises PostgresError for a value that has no form there."""
        return [
            converted(found, column.name, column.base, column.spark)
            for found, column in zip(columns, self.columns, strict=True)
        ]


def quote_identifier(name: str) -> str:
    """The very name, in SQL."""
    return '"' + name.replace('"', '""') + '"'


def table_name(spec: PostgresSpec) -> str:
    """The table that a source means, in SQL: ``table``, or the source's own schema and identifier."""
    if spec.table:
        return spec.table
    parts = re.findall(r"`((?:[^`]|``)*)`|([^`.]+)", spec.relation)
    names = [quoted.replace("``", "`") or plain for quoted, plain in parts]
    return ".".join(quote_identifier(name) for name in names[-2:])


def describe(connection: Connection, name: str, declared: Schema | None) -> PostgresTable:
    """The table as it is now; ``declared``: columns with a type that the source declares. Raises PostgresError where it
    cannot be followed."""
    import psycopg

    try:
        found = connection.execute(_RELATION, (name,)).fetchone()
    except (psycopg.errors.SyntaxError, psycopg.errors.InvalidName):
        raise PostgresError(
            f"table {name} is no name in SQL", "Write schema.table, with double quotes where needed."
        ) from None
    if found is None:
        raise PostgresError(f"there is no table {name}", "Set differential.table, or create it.")
    oid, schema, table, kind, identity, persistence, may_read = found
    if kind not in ("r", "p") or persistence != "p":
        raise PostgresError(f"{name} is no ordinary table, so the log does not have it", "Read the tables beneath it.")
    if not may_read:
        raise PostgresError(
            f"permission denied for table {name}", f"Run: GRANT SELECT ON {name} TO the user of options.url."
        )
    columns = _columns(connection, oid, name, declared)
    key = _key(connection, oid, name, identity)
    parts = _parts(connection, oid, name, identity) if kind == "p" else ()
    return PostgresTable(oid, schema, table, is_partitioned=kind == "p", columns=columns, key=key, parts=parts)


def _columns(connection: Connection, oid: int, name: str, declared: Schema | None) -> tuple[TableColumn, ...]:
    rows = connection.execute(_COLUMNS, (oid,)).fetchall()
    found: list[TableColumn] = []
    for column, kind, modifier, changed, base, base_modifier, is_builtin in rows:
        own = base if is_builtin else f"{base} "  # a user's type may have any name
        given = declared.find(column) if declared else None
        if given is not None and not may_be(own, given.type):
            raise PostgresError(
                f"column {column} of {name} is declared {given.type}, and it is {base}",
                "Leave out its data_type, or declare it string.",
            )
        spark = given.type if given else spark_type(own, base_modifier)
        found.append(TableColumn(column, kind, modifier, base=own, spark=spark, identity=changed))
    require_names(name, [column.name for column in found], declared)
    return tuple(found)


def _key(connection: Connection, oid: int, name: str, identity: str) -> tuple[str, ...]:
    if identity == "f":
        return ()
    rows = connection.execute(_IDENTITY, (oid, identity)).fetchall() if identity in ("d", "i") else []
    if not rows or any(is_nullable for _, is_nullable in rows):
        why = {"n": "REPLICA IDENTITY NOTHING", "i": "no index left for its replica identity"}
        raise PostgresError(
            f"the log does not say which row of {name} changes: it has {why.get(identity, 'no primary key')}",
            f"Give it a primary key, or run: ALTER TABLE {name} REPLICA IDENTITY FULL "
            "(or REPLICA IDENTITY USING INDEX of a unique index).",
        )
    return tuple(column for column, _ in rows)


def _parts(connection: Connection, oid: int, name: str, identity: str) -> tuple[tuple[int, int], ...]:
    rows = connection.execute(_PARTITIONS, (oid,)).fetchall()
    for part, _, own, kind, persistence, leaf in rows:
        if part != oid and (kind != "r" or persistence != "p"):
            raise PostgresError(
                f"partition {leaf} of {name} is no ordinary table", "The log does not have it: detach it."
            )
        if part != oid and own != identity:
            words = {"f": "FULL", "d": "DEFAULT"}.get(identity, "USING INDEX ...")
            raise PostgresError(
                f"partition {leaf} of {name} has another replica identity than the table",
                f"Run: ALTER TABLE {leaf} REPLICA IDENTITY {words}",
            )
    return tuple((part, file) for part, file, *_ in rows if part != oid)
