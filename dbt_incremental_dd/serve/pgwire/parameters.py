"""Parameters ``$1``, ``$2``, ...: the values that a client binds replace them in the statement, as literals.

Strings are quoted, so that nothing in them is read as SQL. A value without a declared type becomes an untyped literal,
whose type DuckDB infers from its place.
"""

from __future__ import annotations

import re
import struct
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from itertools import pairwise

from sqlglot import Token, TokenType

from dbt_incremental_dd.duck.sql import literal
from dbt_incremental_dd.query.as_of import tokens
from dbt_incremental_dd.serve.pgwire import types as t
from dbt_incremental_dd.serve.pgwire.datetimes import date_of, time_text, timestamp_of
from dbt_incremental_dd.serve.pgwire.errors import FEATURE, PgError
from dbt_incremental_dd.serve.pgwire.numeric import unpack

_DUCKDB = {
    t.BOOL: "BOOLEAN",
    t.INT2: "SMALLINT",
    t.INT4: "INTEGER",
    t.INT8: "BIGINT",
    t.OID: "BIGINT",
    t.FLOAT4: "REAL",
    t.FLOAT8: "DOUBLE",
    t.TEXT: "VARCHAR",
    t.VARCHAR: "VARCHAR",
    t.BPCHAR: "VARCHAR",
    t.NAME: "VARCHAR",
    t.DATE: "DATE",
    t.TIME: "TIME",
    t.TIMESTAMP: "TIMESTAMP",
    t.TIMESTAMPTZ: "TIMESTAMPTZ",
    t.UUID: "UUID",
    t.INTERVAL: "INTERVAL",
    t.BYTEA: "BLOB",
}

_CAST_TO = {
    **{"BOOL": t.BOOL, "BOOLEAN": t.BOOL, "SMALLINT": t.INT2, "INT2": t.INT2, "INT": t.INT4, "INTEGER": t.INT4},
    **{"INT4": t.INT4, "BIGINT": t.INT8, "INT8": t.INT8, "REAL": t.FLOAT4, "FLOAT4": t.FLOAT4, "FLOAT8": t.FLOAT8},
    **{"DOUBLE": t.FLOAT8, "NUMERIC": t.NUMERIC, "DECIMAL": t.NUMERIC, "DATE": t.DATE, "TIMESTAMP": t.TIMESTAMP},
    **{"TIMESTAMPTZ": t.TIMESTAMPTZ, "BYTEA": t.BYTEA, "UUID": t.UUID},
}
"""The type of a parameter that is cast in place, if the client does not declare one."""


def parameter_oids(sql: str, oids: Sequence[int]) -> list[int]:
    """The types of all parameters: as the client declares them, or as they are cast in place, or 0 if DuckDB infers
    them."""
    found = tokens(sql)
    known = dict(enumerate(oids))
    highest = len(oids)
    for at, number in _placeholders(found):
        highest = max(highest, number + 1)
        if not known.get(number):
            known[number] = _cast(found, at)
    return [known.get(number) or 0 for number in range(highest)]


def bind_literals(sql: str, literals: Sequence[Literal]) -> str:
    """The statement with its parameters' values. Raises PgError if a value is missing."""
    found = tokens(sql)
    made, end = [], 0
    for at, number in _placeholders(found):
        if number >= len(literals):
            raise PgError("42P02", f"there is no parameter ${number + 1}")
        is_time = at >= 2 and found[at - 1].text.upper() in ("OF", "TO")
        to_literal = literals[number]
        made += [sql[end : found[at].start], to_literal.plain if is_time else to_literal.typed]
        end = found[at + 1].end + 1
    return "".join([*made, sql[end:]])


class Literal:
    """A value as SQL. ``typed``: with its type; ``plain``: for AS OF and UP TO, which take a time."""

    def __init__(self, oid: int, text: str | None) -> None:
        kind = _DUCKDB.get(oid)
        self.plain = "0" if text is None else text if re.fullmatch(r"\d+", text) else literal(text)
        if text is None:
            self.typed = f"NULL::{kind}" if kind else "NULL"
        elif oid == t.NUMERIC:
            self.typed = _decimal(text)
        elif oid == t.BYTEA:
            self.typed = f"from_hex({literal(_bytea(text).hex())})"
        else:
            self.typed = f"{literal(text)}::{kind}" if kind else literal(text)


def to_literal(oid: int, data: bytes | None, *, binary: bool) -> Literal:
    """A value that the client binds. Raises PgError if the bytes are not a value of that type."""
    if data is None:
        return Literal(oid, None)
    if not binary or oid in (0, t.TEXT, t.VARCHAR, t.BPCHAR, t.NAME, t.UNKNOWN, t.JSON):
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise PgError("22021", "a parameter is not UTF-8") from None
        if "\x00" in text:
            raise PgError("22021", "a parameter holds a zero byte")
        return Literal(oid, text)
    read = _BINARY.get(oid)
    if read is None:
        raise PgError(FEATURE, f"parameters of type {oid} are not supported in binary", "Send it as text.")
    try:
        return Literal(oid, read(data))
    except (struct.error, ValueError) as error:
        raise PgError("22P03", f"a parameter of type {oid} in binary is malformed: {error}") from None


def _unpacked(layout: str, form: Callable[..., str] = str) -> Callable[[bytes], str]:
    return lambda data: form(*struct.unpack(layout, data))


_BINARY: dict[int, Callable[[bytes], str]] = {
    t.BOOL: _unpacked("!?"),
    t.INT2: _unpacked("!h"),
    t.INT4: _unpacked("!i"),
    t.INT8: _unpacked("!q"),
    t.OID: _unpacked("!I"),
    t.FLOAT4: _unpacked("!f", repr),
    t.FLOAT8: _unpacked("!d", repr),
    t.DATE: _unpacked("!i", date_of),
    t.TIME: _unpacked("!q", lambda us: time_text(us).decode()),
    t.TIMESTAMP: _unpacked("!q", timestamp_of),
    t.TIMESTAMPTZ: _unpacked("!q", lambda us: _with_zone(timestamp_of(us))),
    t.NUMERIC: lambda data: str(unpack(data)),
    t.BYTEA: lambda data: "\\x" + data.hex(),
    t.UUID: lambda data: str(uuid.UUID(bytes=data)),
}


def _with_zone(text: str) -> str:
    return text if text.endswith("infinity") else f"{text}+00"


def _placeholders(found: Sequence[Token]) -> list[tuple[int, int]]:
    """The positions of ``$n`` among the tokens, and each parameter's number minus one."""
    return [
        (at, int(after.text) - 1)
        for at, (token, after) in enumerate(pairwise(found))
        if token.token_type == TokenType.PARAMETER
        and token.text == "$"
        and re.fullmatch(r"[1-9]\d{0,4}", after.text)
        and after.start == token.end + 1
    ]


def _cast(found: Sequence[Token], at: int) -> int:
    is_cast = len(found) > at + 3 and found[at + 2].token_type == TokenType.DCOLON
    return _CAST_TO.get(found[at + 3].text.upper(), 0) if is_cast else 0


def _decimal(text: str) -> str:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        raise PgError("22P02", f"{text!r} is not a numeric") from None
    if not number.is_finite():
        return f"{literal(str(number))}::DOUBLE"
    plain = format(number, "f")
    scale = len(plain.partition(".")[2])
    width = max(len(plain.replace(".", "").lstrip("-")), scale, 1)
    return f"{literal(plain)}::" + (f"DECIMAL({width}, {scale})" if width <= 38 else "DOUBLE")


def _bytea(text: str) -> bytes:
    """Bytes from hexadecimal digits after ``\\x``, or from characters with octal escapes."""
    try:
        if text.startswith("\\x"):
            return bytes.fromhex(text[2:])
        parts = re.split(rb"(\\\\|\\[0-3][0-7]{2})", text.encode())
    except ValueError:
        raise PgError("22P02", f"{text!r} is not a bytea") from None
    return b"".join(_unescaped(part) if part.startswith(b"\\") else part for part in parts)


def _unescaped(part: bytes) -> bytes:
    return b"\\" if part == b"\\\\" else bytes([int(part[1:], 8)]) if len(part) == 4 else part
