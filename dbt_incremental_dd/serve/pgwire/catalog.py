"""Queries of Postgres' system catalog, computed by a separate DuckDB that holds descriptions only."""

from __future__ import annotations

import contextlib
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa
from sqlglot import Token, TokenType

from dbt_incremental_dd.api import Collection, Database
from dbt_incremental_dd.core.errors import QueryCanceled, QueryError, StateError
from dbt_incremental_dd.core.schema import DIFF, TIME
from dbt_incremental_dd.duck.sql import literal
from dbt_incremental_dd.query.as_of import tokens
from dbt_incremental_dd.query.engine import BATCH_ROWS, QueryResult
from dbt_incremental_dd.serve.pgwire import types as t
from dbt_incremental_dd.serve.pgwire.catalog_tables import FUNCTIONS, RELATIONS, STANDALONE_FUNCTIONS, functions, tables
from dbt_incremental_dd.serve.pgwire.settings import SERVER_VERSION, Settings
from dbt_incremental_dd.trace.arrow_reader import updates_schema
from dbt_incremental_dd.untrusted.limits import StatementRun
from dbt_incremental_dd.untrusted.parsed_select import parse_select
from dbt_incremental_dd.untrusted.sized import macros

_PUBLIC = "public"
_SYSTEM = {"pg_catalog": 11, "information_schema": 13000, _PUBLIC: 2200}

_TYPES = (
    *((t.BOOL, "bool", "boolean", 1, "B"), (t.BYTEA, "bytea", "bytea", -1, "U"), (t.NAME, "name", "name", 64, "S")),
    *((t.INT8, "int8", "bigint", 8, "N"), (t.INT2, "int2", "smallint", 2, "N"), (t.INT4, "int4", "integer", 4, "N")),
    *((t.TEXT, "text", "text", -1, "S"), (t.OID, "oid", "oid", 4, "N"), (t.JSON, "json", "json", -1, "U")),
    *((t.FLOAT4, "float4", "real", 4, "N"), (t.FLOAT8, "float8", "double precision", 8, "N")),
    *((t.VARCHAR, "varchar", "character varying", -1, "S"), (t.NUMERIC, "numeric", "numeric", -1, "N")),
    *((t.DATE, "date", "date", 4, "D"), (t.TIME, "time", "time without time zone", 8, "D")),
    (t.TIMESTAMP, "timestamp", "timestamp without time zone", 8, "D"),
    (t.TIMESTAMPTZ, "timestamptz", "timestamp with time zone", 8, "D"),
    *((t.INTERVAL, "interval", "interval", 16, "T"), (t.UUID, "uuid", "uuid", 16, "U")),
)
"""OID, name, SQL name, size (bytes) and category."""


@dataclass(frozen=True)
class Client:
    """The client of a connection. ``process``: the process id in its cancellation key."""

    user: str
    database: str
    process: int
    settings: Settings


_RENAMED = {"json_build_object": "json_object"}
"""Postgres functions that DuckDB has under another name."""

_MEMORY_LIMIT = "64MB"
"""For a catalog and the queries over it."""
_CATALOG_FUNCTIONS = STANDALONE_FUNCTIONS | FUNCTIONS

_Schemas = tuple[tuple[str, pa.Schema], ...]


class SystemCatalog:
    """The system catalog of one connection. ``interrupt`` may be called from another thread."""

    def __init__(self, database: Database, client: Client) -> None:
        self._database = database
        self._client = client
        self._built: tuple[_Schemas, duckdb.DuckDBPyConnection] | None = None
        self._run: StatementRun | None = None

    def select(self, sql: str, cursors: Mapping[str, str], new_run: Callable[[], StatementRun]) -> QueryResult | None:
        """The result of a catalog query; None if the statement is not one. ``cursors``: the statements of the open
        cursors by name. ``new_run``: begins the computation. Raises duckdb.Error or QueryError for
        tables and functions that this catalog lacks, QueryCanceled if the query is interrupted."""
        found = tokens(sql)
        if not _reads_catalog(found):
            return None
        text = _to_duckdb(sql, found)
        _require_catalog(text)
        connection = self._connection()
        connection.execute("DELETE FROM pg_cursors")
        for name, statement in cursors.items():
            connection.execute("INSERT INTO pg_cursors VALUES (?, ?, false, false, false)", [name, statement])
        self._run = new_run()
        try:
            with self._run.computing(connection):
                table = connection.sql(text).to_arrow_table()
        except duckdb.Error as error:
            if self._run.reason is not None:
                raise QueryCanceled(self._run.reason) from error
            raise
        table = table.rename_columns([_column_name(name) for name in table.column_names])
        return QueryResult(table.schema, iter(table.to_batches(max_chunksize=BATCH_ROWS)), None)

    def interrupt(self) -> None:
        """Interrupts the running query, which then raises QueryCanceled."""
        if self._run is not None:
            with contextlib.suppress(duckdb.ConnectionException):
                self._run.interrupt()

    def close(self) -> None:
        """Closes the catalog's DuckDB."""
        if self._built is not None:
            self._built[1].close()
            self._built = None

    def _connection(self) -> duckdb.DuckDBPyConnection:
        """A DuckDB that describes the current collections."""
        now = tuple(_schemas(self._database.collections()))
        if self._built is None or self._built[0] != now:
            self.close()
            self._built = now, _build(now, self._client)
        return self._built[1]


def _schemas(collections: Sequence[Collection]) -> Iterator[tuple[str, pa.Schema]]:
    for collection in collections:
        try:
            schema = updates_schema(collection.place)
        except StateError:
            continue
        yield collection.name, pa.schema([field for field in schema if field.name not in (TIME, DIFF)])


def _build(described: _Schemas, client: Client) -> duckdb.DuckDBPyConnection:
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "TimeZone": "UTC",
        "memory_limit": _MEMORY_LIMIT,
        "temp_directory": "",
        "threads": 1,
    }
    connection = duckdb.connect(":memory:", config=config)
    for statement in macros():
        connection.execute(statement)
    connection.execute("SET enable_external_access = false")
    connection.execute("SET disabled_filesystems = 'LocalFileSystem'")
    connection.execute("SET lock_configuration = true")
    schemas = dict.fromkeys(name.rpartition(".")[0] or _PUBLIC for name, _ in described)
    oids = {**{schema: _oid(schema) for schema in schemas}, **_SYSTEM}
    settings = client.settings.show("all")
    rows: dict[str, list[tuple[object, ...]]] = {
        "pg_namespace(oid, nspname, nspowner)": [(oid, schema, 10) for schema, oid in oids.items()],
        "pg_class(oid, relname, relnamespace, relnatts)": [
            (_oid(name), name.rpartition(".")[2], oids[name.rpartition(".")[0] or _PUBLIC], len(schema))
            for name, schema in described
        ],
        "pg_attribute(attrelid, attname, atttypid, attlen, attnum, atttypmod)": [
            (
                _oid(name),
                field.name,
                t.pg_type(field.type).oid,
                t.pg_type(field.type).size,
                at,
                _type_modifier(field.type),
            )
            for name, schema in described
            for at, field in enumerate(schema, 1)
        ],
        "pg_type(oid, typname, typlen, typcategory)": [(oid, name, size, kind) for oid, name, _, size, kind in _TYPES],
        "pg_database(oid, datname)": [(1, client.database)],
        "pg_roles(oid, rolname)": [(10, client.user)],
        "pg_settings(name, setting)": list(
            zip(settings["name"].to_pylist(), settings["setting"].to_pylist(), strict=True)
        ),
    }
    for statement in tables():
        connection.execute(statement)
    for columns, values in rows.items():
        if values:
            places = ", ".join("?" for _ in values[0])
            connection.executemany(f"INSERT INTO {columns} VALUES ({places})", values)
    for statement in (*_client_statements(described, list(schemas), client), *functions()):
        connection.execute(statement)
    return connection


def _client_statements(described: _Schemas, schemas: Sequence[str], client: Client) -> Iterator[str]:
    """Statements that create the functions whose results depend on the client or the collections."""
    lasts = [name.rpartition(".")[2] for name, _ in described]
    visible = [_oid(name) for name, _ in described if lasts.count(name.rpartition(".")[2]) == 1]
    constants = {
        "version": literal(f"PostgreSQL {SERVER_VERSION}"),
        **dict.fromkeys(("current_database", "current_catalog"), literal(client.database)),
        "current_schema": literal(_PUBLIC),
        **dict.fromkeys(("current_user", "session_user", "current_role", "user"), literal(client.user)),
        "pg_backend_pid": str(client.process),
    }
    for name, value in constants.items():
        yield f'CREATE MACRO "{name}"() AS {value}'
    listed = ", ".join(literal(schema) for schema in dict.fromkeys(["pg_catalog", _PUBLIC, *schemas]))
    yield f"CREATE MACRO current_schemas(implicit) AS [{listed}]"
    yield f"CREATE MACRO pg_get_userbyid(o) AS {literal(client.user)}"
    yield f"CREATE MACRO pg_table_is_visible(o) AS list_contains({visible}::BIGINT[], o)"
    names = " ".join(f"WHEN {oid} THEN {literal(name)}" for oid, _, name, _, _ in _TYPES)
    numeric = "'numeric(' || ((m - 4) >> 16) || ',' || ((m - 4) & 65535) || ')'"
    yield f"CREATE MACRO format_type(o, m) AS CASE WHEN o = {t.NUMERIC} AND m >= 4 THEN {numeric} " + (
        f"ELSE CASE o {names} ELSE '???' END END"
    )


def _oid(name: str) -> int:
    """A stable OID for a name, above those that Postgres assigns itself."""
    return 100_000 + zlib.crc32(name.encode()) % 2_000_000_000


def _type_modifier(arrow: pa.DataType) -> int:
    """Postgres' type modifier: a decimal's precision and scale; -1 for other types."""
    return (arrow.precision << 16 | arrow.scale) + 4 if pa.types.is_decimal(arrow) else -1


def _require_catalog(sql: str) -> None:
    """Raises QueryError unless the query reads only catalog tables that exist."""
    reading = parse_select(sql, _CATALOG_FUNCTIONS)
    for schema, name in reading.tables:
        known = name in RELATIONS or name in reading.defined
        if not known or schema:
            raise QueryError(f"Table with name {f'{schema}.{name}' if schema else name} does not exist")


def _keywords(found: Sequence[Token]) -> list[str]:
    return ["" if token.token_type == TokenType.STRING else token.text.lower() for token in found]


def _reads_catalog(found: Sequence[Token]) -> bool:
    words = set(_keywords(found))
    if not words & {"select", "with", "values", "table", "from"}:
        return False
    return bool(
        words & {"pg_catalog", "information_schema", *RELATIONS}
        or ("from" not in words and words & STANDALONE_FUNCTIONS)
    )


def _to_duckdb(sql: str, found: Sequence[Token]) -> str:
    """The query without syntax that DuckDB lacks: schemas before catalog names, ``OPERATOR(pg_catalog.~)``, collations,
    and names cast to ``regclass``."""
    words = _keywords(found)
    made, at, end = [], 0, 0
    for number, token in enumerate(found):
        if number < at:
            continue
        text, used = _replacement(words, found, number)
        at = number + used
        made += [sql[end : token.start], sql[token.start : token.end + 1] if text is None else text]
        end = found[at - 1].end + 1
    return "".join(made)


def _replacement(words: Sequence[str], found: Sequence[Token], number: int) -> tuple[str | None, int]:
    """The replacement for the next tokens, and how many it replaces; None to keep the token."""
    token, after = found[number], words[number + 1 : number + 6]
    if words[number] == "pg_catalog" and after[:1] == ["."]:
        return "", 2
    if words[number] in _RENAMED:
        return _RENAMED[words[number]], 1
    if words[number] == "information_schema" and after[:1] == ["."]:
        name = f"information_schema_{after[1]}"
        return (name, 3) if name in RELATIONS else (None, 1)
    if words[number] == "operator" and after[:1] == ["("]:
        end = words.index(")", number)
        begin = number + (4 if after[2:3] == ["."] else 2)
        return "".join(words[begin:end]), end - number + 1
    if token.token_type == TokenType.COLLATE:
        return "", 4 if after[1:2] == ["."] else 2
    if token.token_type == TokenType.STRING and (casts := _regclass_cast_length(after)):
        return f"to_regclass({literal(token.text)})", 1 + casts
    return None, 1


def _column_name(name: str) -> str:
    """As in Postgres, a column is named after the function that computes it."""
    call = re.fullmatch(r'"?(\w+)"?\(.*\)', name)
    return call[1] if call else name


def _regclass_cast_length(after: Sequence[str]) -> int:
    """The number of tokens that cast the preceding one to ``regclass``; 0 if they do not."""
    for cast in (["::", "regclass"], ["::", "pg_catalog", ".", "regclass"], ["::", "varchar", "::", "regclass"]):
        if list(after[: len(cast)]) == cast:
            return len(cast)
    return 0
