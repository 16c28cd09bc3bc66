"""Errors as Postgres reports them: SQLSTATE, message and hint."""

from __future__ import annotations

import logging
import re

import duckdb
import pyarrow as pa

from dbt_incremental_dd.core.errors import (
    ConfigError,
    DifferentialError,
    FrontierError,
    QueryCanceled,
    QueryError,
    ServerBusy,
    StateError,
    UnsupportedSQL,
)

CANCELED = "57014"
FAILED_TRANSACTION = "25P02"
FEATURE = "0A000"
IN_FAILED = "current transaction is aborted, commands ignored until end of transaction block"
PROTOCOL = "08P01"
SYNTAX = "42601"


_log = logging.getLogger(__name__)


class PgError(Exception):
    """An error sent to one client. ``code``: an SQLSTATE."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


class ProtocolError(PgError):
    """A client has violated the protocol; its connection ends."""

    def __init__(self, message: str) -> None:
        super().__init__(PROTOCOL, message)


def to_pg_error(error: Exception) -> PgError:
    """The error to send to the client. Unexpected errors are logged."""
    if isinstance(error, PgError):
        return error
    if isinstance(error, DifferentialError):
        return PgError(_state(error), error.message, error.remedy)
    if isinstance(error, duckdb.Error | pa.ArrowException):
        return PgError(_query_state(error, str(error)), str(error).strip())
    _log.error("a client's request has failed", exc_info=error)
    return PgError("XX000", f"internal error: {error or type(error).__name__}")


def _state(error: DifferentialError) -> str:
    if isinstance(error, QueryCanceled):
        return "53200" if "out of memory" in error.message else CANCELED
    if isinstance(error, QueryError):
        return _query_state(error.__cause__, error.message)
    for kind, state in _ERROR_STATES:
        if isinstance(error, kind):
            return state
    return "58000"


_ERROR_STATES: tuple[tuple[type[DifferentialError], str], ...] = (
    (FrontierError, "22003"),
    (StateError, "42P01"),
    (ConfigError, "22023"),
    (ServerBusy, "53300"),
    (UnsupportedSQL, FEATURE),
)


def _query_state(cause: object, message: str) -> str:
    """The SQLSTATE by DuckDB's message, or else by the exception's class."""
    for pattern, state in _MESSAGE_PATTERNS:
        if re.search(pattern, message, re.IGNORECASE):
            return state
    for kind, state in _EXCEPTION_STATES:
        if isinstance(cause, kind):
            return state
    return SYNTAX


_MESSAGE_PATTERNS = (
    (r"only SELECT and SUBSCRIBE", "25006"),
    (r"interrupt", CANCELED),
    (r"division by zero", "22012"),
    (r"may be any of", "42P09"),
    (r"(Scalar|Aggregate|Macro) Function with name|No function matches|does not support the supplied arg", "42883"),
    (r"Table with name|Table Function with name|schema with name|Catalog .* does not exist", "42P01"),
    (r"Referenced (column|table)|Values list .* does not have a column|does not have a column", "42703"),
    (r"Ambiguous reference", "42702"),
    (r"must appear in the GROUP BY", "42803"),
    (r"Could not convert|Conversion Error|can't be cast", "22P02"),
    (r"Type with name", "42704"),
    (r"Permission|disabled by configuration|file system operations are disabled", "42501"),
    (r"AS OF .* is not a time", "22007"),
)

_EXCEPTION_STATES: tuple[tuple[type[Exception], str], ...] = (
    (duckdb.ParserException, SYNTAX),
    (duckdb.CatalogException, "42P01"),
    (duckdb.ConversionException, "22P02"),
    (duckdb.OutOfRangeException, "22003"),
    (duckdb.OutOfMemoryException, "53200"),
    (duckdb.PermissionException, "42501"),
    (duckdb.NotImplementedException, FEATURE),
    (duckdb.BinderException, "42804"),
    (duckdb.InternalException, "XX000"),
    (duckdb.IOException, "58030"),
    (duckdb.InvalidInputException, "22023"),
    (duckdb.Error, "XX000"),
)
