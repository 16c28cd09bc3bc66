"""Prepared statements and the portals that are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from dbt_incremental_dd.serve.pgwire.errors import PROTOCOL, SYNTAX, PgError
from dbt_incremental_dd.serve.pgwire.executor import Done, Giving
from dbt_incremental_dd.serve.pgwire.parameters import Literal, bound, declared, value
from dbt_incremental_dd.serve.pgwire.parser import parse
from dbt_incremental_dd.serve.pgwire.sender import is_binary
from dbt_incremental_dd.serve.pgwire.statements import Statement
from dbt_incremental_dd.serve.pgwire.words import split


@dataclass(frozen=True)
class Prepared:
    """``oids``: 0 for a text of which DuckDB infers the type; ``statement``: with NULL for its parameters, None for an
    empty one."""

    sql: str
    oids: list[int]
    statement: Statement | None


@dataclass
class Portal:
    """``outcome``: None before it is executed. ``formats``: as ``is_binary`` takes them."""

    statement: Statement | None
    sql: str
    formats: tuple[int, ...]
    outcome: Done | Giving | None = None

    def require_formats(self, schema: pa.Schema) -> None:
        """Raises PgError where they are not those of as many columns."""
        if len(self.formats) not in (0, 1, len(schema)):
            message = f"{len(self.formats)} formats are asked for, and there are {len(schema)} columns"
            raise PgError(PROTOCOL, message)


def prepare(sql: str, oids: Sequence[int]) -> Prepared:
    """``oids``: of the first parameters, as the client says. Raises PgError or QueryError for what is not one
    statement, or none."""
    statements = split(sql)
    if len(statements) > 1:
        raise PgError(SYNTAX, "cannot insert multiple commands into a prepared statement")
    if not statements:
        return Prepared("", list(oids), None)
    known = declared(statements[0], oids)
    nulls = [Literal(oid, None) for oid in known]
    return Prepared(statements[0], known, parse(bound(statements[0], nulls)))


def bind(
    prepared: Prepared, values: Sequence[bytes | None], codes: tuple[int, ...], formats: tuple[int, ...]
) -> Portal:
    """``codes``: the formats of the values; ``formats``: of the columns that are asked for. Raises PgError where they
    are not those of the statement, or a value is malformed."""
    if len(values) != len(prepared.oids) or len(codes) not in (0, 1, len(values)):
        raise PgError(PROTOCOL, f"the statement has {len(prepared.oids)} parameters, and {len(values)} are bound")
    if not {*codes, *formats} <= {0, 1}:
        raise PgError(PROTOCOL, "a format is 0 for text or 1 for binary")
    forms = [is_binary(codes, at) for at in range(len(values))]
    literals = [value(oid, one, binary=binary) for oid, one, binary in zip(prepared.oids, values, forms, strict=True)]
    statement = parse(bound(prepared.sql, literals)) if literals and prepared.sql else prepared.statement
    return Portal(statement, prepared.sql, formats)
