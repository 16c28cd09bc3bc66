"""What a table is: its columns, how its rows are identified, and which other tables' changes reach it without the log's
telling."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.types import Type
from dbt_incremental_dd.sources.connectors.database_log.spool import texts
from dbt_incremental_dd.sources.connectors.database_log.table import LogTable, require_names
from dbt_incremental_dd.sources.connectors.mysql.charsets import Decode, decoder
from dbt_incremental_dd.sources.connectors.mysql.connection import MysqlError, rows
from dbt_incremental_dd.sources.connectors.mysql.foreign_keys import Cascade, cascades
from dbt_incremental_dd.sources.connectors.mysql.types import Base, converted, is_followed, may_be, spark_type

if TYPE_CHECKING:
    from dbt_incremental_dd.sources.connectors.mysql.connection import Connection

_TABLE = """
SELECT t.table_schema, t.table_name, t.table_type, t.engine, e.transactions
FROM information_schema.tables t LEFT JOIN information_schema.engines e ON e.engine = t.engine
WHERE t.table_schema = %s AND t.table_name = %s
"""
_COLUMNS = """
SELECT column_name, data_type, column_type, character_set_name, character_octet_length, numeric_precision,
numeric_scale, column_key, extra
FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
_LISTED = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPED = re.compile(r"''|\\(.)", re.DOTALL)


@dataclass(frozen=True)
class MysqlColumn:
    """``type`` is the whole of it, as in CREATE TABLE; ``place``: among all columns of the table; ``length``: bytes at
    most; ``values``: of an enumeration or a set; ``decode``: makes UTF-8 of what the log has, if that is another."""

    name: str
    type: str
    charset: str | None
    place: int
    base: Base
    spark: Type
    length: int
    values: tuple[bytes, ...]
    decode: Decode | None = field(compare=False)

    @property
    def select(self) -> str:
        """What gives its values as the log's are: numbers in full, and without zeros before them."""
        name = quote_identifier(self.name)
        if self.base.name in ("float", "double"):
            return f"{name} + 0e0"
        return f"{name} + 0" if self.base.name == "bit" or "zerofill" in self.type else name


@dataclass(frozen=True)
class MysqlTable(LogTable):
    """``width``: how many columns the table has, generated ones among them; ``cascades``: what else changes it."""

    schema: str
    name: str
    columns: tuple[MysqlColumn, ...]
    key: tuple[str, ...]
    width: int
    cascades: tuple[Cascade, ...]

    @property
    def sql(self) -> str:
        return f"{quote_identifier(self.schema)}.{quote_identifier(self.name)}"

    @property
    def shape(self) -> list[Any]:
        columns = [[column.name, column.type, column.charset, column.place] for column in self.columns]
        return [self.schema, self.name, columns, list(self.key), self.width]

    def arrays(self, columns: Sequence[Sequence[bytes | None]]) -> list[pa.ChunkedArray]:
        return self.typed([
            pa.chunked_array([pa.array(values, pa.binary())]) if column.base.is_binary else texts(values, column.name)
            for values, column in zip(columns, self.columns, strict=True)
        ])  # fmt: skip

    def typed(self, columns: Sequence[pa.ChunkedArray]) -> list[pa.ChunkedArray]:
        """Columns of text, or bytes, in the table's types. Raises DatabaseError for a value that has no form there."""
        return [
            found if column.base.is_binary else converted(found, column.name, column.base.name, column.spark)
            for found, column in zip(columns, self.columns, strict=True)
        ]


def quote_identifier(name: str) -> str:
    """The very name, in SQL."""
    return "`" + name.replace("`", "``") + "`"


def describe(connection: Connection, name: tuple[str, str], declared: Schema | None) -> MysqlTable:
    """The table, by its database and name, as it is now; ``declared``: columns with a type that the source declares.
    Raises MysqlError where it cannot be followed."""
    shown = ".".join(map(quote_identifier, name))
    found = rows(connection, _TABLE, *name)
    if not found:
        raise MysqlError(
            f"there is no table {shown}, or the user may not read it",
            "Set differential.table or options.database, create it, or run: "
            f"GRANT SELECT ON {shown} TO the user of options.user.",
        )
    schema, table, kind, engine, transactions = found[0]
    if kind != "BASE TABLE":
        raise MysqlError(f"{shown} is no ordinary table ({kind})", "Read the tables beneath it.")
    if transactions != "YES":
        raise MysqlError(
            f"the engine of {shown} is {engine}, which has no transactions, so it cannot be copied consistently",
            f"Run: ALTER TABLE {shown} ENGINE = InnoDB",
        )
    every = rows(connection, _COLUMNS, schema, table)
    columns = _columns(connection, every, shown, declared)
    keys = [column for column, *_, key, _ in every if key == "PRI"]
    names = {column.name for column in columns}
    key = tuple(keys) if names.issuperset(keys) else ()
    return MysqlTable(schema, table, columns, key, len(every), cascades(connection, schema, table))


def _columns(
    connection: Connection, every: Sequence[Sequence[Any]], table: str, declared: Schema | None
) -> tuple[MysqlColumn, ...]:
    found = [
        _column(connection, place, row, table, declared)
        for place, row in enumerate(every)
        if "GENERATED" not in row[-1].upper().replace("DEFAULT_GENERATED", "")
    ]
    require_names(table, [column.name for column in found], declared)
    return tuple(found)


def _column(connection: Connection, place: int, row: Sequence[Any], table: str, declared: Schema | None) -> MysqlColumn:
    name, data_type, whole, charset, length, precision, scale, _, _ = row
    base = Base(data_type.lower(), "unsigned" in whole, int(precision or 0), int(scale or 0))
    if not is_followed(base) or "compressed" in whole.lower() or "mariadb-5.3" in whole:
        raise MysqlError(
            f"column {name} of {table} is {whole}, whose values are not read from the log",
            "Read a table without it, or change its type; an old form of dates goes by ALTER TABLE ... FORCE.",
        )
    given = declared.find(name) if declared else None
    if given is not None and not may_be(base, given.type):
        raise MysqlError(
            f"column {name} of {table} is declared {given.type}, and it is {whole}",
            "Leave out its data_type, or declare it string.",
        )
    is_listed = base.name in ("enum", "set")
    return MysqlColumn(
        name,
        whole,
        charset,
        place,
        base=base,
        spark=given.type if given else spark_type(base),
        length=int(length or 0),
        values=tuple(_unescaped(value).encode() for value in _LISTED.findall(whole)) if is_listed else (),
        decode=decoder(connection, charset) if charset and not is_listed and base.name != "uuid" else None,
    )


def _unescaped(text: str) -> str:
    signs = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "Z": "\x1a"}
    return _ESCAPED.sub(lambda found: signs.get(found[1], found[1]) if found[1] else "'", text)
