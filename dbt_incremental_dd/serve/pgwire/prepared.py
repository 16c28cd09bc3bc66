"""Prepared statements, and their portals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from dbt_incremental_dd.serve.pgwire.errors import PROTOCOL, SYNTAX, PgError
from dbt_incremental_dd.serve.pgwire.executor import CommandResult, RowsResult
from dbt_incremental_dd.serve.pgwire.parameters import Literal, bind_literals, parameter_oids, to_literal
from dbt_incremental_dd.serve.pgwire.parser import parse
from dbt_incremental_dd.serve.pgwire.sender import is_binary
from dbt_incremental_dd.serve.pgwire.statements import Statement
from dbt_incremental_dd.serve.pgwire.token_cursor import split_statements


@dataclass(frozen=True)
class PreparedStatement:
    """``oids``: the parameters' types, 0 if DuckDB infers them. ``statement``: with NULL for the parameters; None if it
    is empty."""

    sql: str
    oids: list[int]
    statement: Statement | None


@dataclass
class Portal:
    """``outcome``: None before execution. ``formats``: as for ``is_binary``."""

    statement: Statement | None
    sql: str
    formats: tuple[int, ...]
    outcome: CommandResult | RowsResult | None = None

    def require_formats(self, schema: pa.Schema) -> None:
        """Raises PgError unless there are no formats, one, or one for each column."""
        if len(self.formats) not in (0, 1, len(schema)):
            message = f"{len(self.formats)} formats are requested for {len(schema)} columns"
            raise PgError(PROTOCOL, message)


def prepare(sql: str, oids: Sequence[int]) -> PreparedStatement:
    """Prepares a statement. ``oids``: the types of the first parameters, as the client declares them. Raises PgError or
    QueryError unless it is one valid statement, or empty."""
    statements = split_statements(sql)
    if len(statements) > 1:
        raise PgError(SYNTAX, "cannot insert multiple commands into a prepared statement")
    if not statements:
        return PreparedStatement("", list(oids), None)
    oids_of_all = parameter_oids(statements[0], oids)
    nulls = [Literal(oid, None) for oid in oids_of_all]
    return PreparedStatement(statements[0], oids_of_all, parse(bind_literals(statements[0], nulls)))


def bind(
    prepared: PreparedStatement, values: Sequence[bytes | None], codes: tuple[int, ...], formats: tuple[int, ...]
) -> Portal:
    """A portal of the statement. ``codes``: the values' formats; ``formats``: the columns'. Raises PgError if they do
    not fit the statement, or a value is malformed."""
    if len(values) != len(prepared.oids) or len(codes) not in (0, 1, len(values)):
        raise PgError(PROTOCOL, f"the statement has {len(prepared.oids)} parameters, and {len(values)} are bound")
    if not {*codes, *formats} <= {0, 1}:
        raise PgError(PROTOCOL, "a format is 0 for text or 1 for binary")
    is_binary_value = [is_binary(codes, at) for at in range(len(values))]
    literals = [
        to_literal(oid, one, binary=binary)
        for oid, one, binary in zip(prepared.oids, values, is_binary_value, strict=True)
    ]
    statement = parse(bind_literals(prepared.sql, literals)) if literals and prepared.sql else prepared.statement
    return Portal(statement, prepared.sql, formats)
