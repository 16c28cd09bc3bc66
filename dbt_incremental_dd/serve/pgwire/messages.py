"""The frames of protocol version 3, and nothing about what they are for. A frame from a client is a byte that tells its
kind, a length that counts itself, and a body; the first one has no kind."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dbt_incremental_dd.serve.pgwire.errors import PgError, ProtocolError

MAX_STARTUP = 10_000
MAX_MESSAGE = 16 * 1024 * 1024

KINDS = frozenset(bytes([kind]) for kind in b"QPBDECHSXpdcf")
"""Of the messages that a client may send."""

VERSION_3 = 3 << 16
CANCEL_REQUEST = (1234 << 16) | 5678
SSL_REQUEST = (1234 << 16) | 5679
GSS_REQUEST = (1234 << 16) | 5680

AUTHENTICATION_OK = b"R\x00\x00\x00\x08\x00\x00\x00\x00"
AUTHENTICATION_CLEARTEXT = b"R\x00\x00\x00\x08\x00\x00\x00\x03"
PARSE_COMPLETE = b"1\x00\x00\x00\x04"
BIND_COMPLETE = b"2\x00\x00\x00\x04"
CLOSE_COMPLETE = b"3\x00\x00\x00\x04"
NO_DATA = b"n\x00\x00\x00\x04"
EMPTY_QUERY = b"I\x00\x00\x00\x04"
PORTAL_SUSPENDED = b"s\x00\x00\x00\x04"
COPY_DONE = b"c\x00\x00\x00\x04"


@dataclass(frozen=True)
class Frame:
    """``kind``: one byte; of a start-up packet, nothing."""

    kind: bytes
    body: bytes


async def read_startup(reader: asyncio.StreamReader) -> Frame:
    """The packet that opens a connection. Raises IncompleteReadError if the client is gone."""
    (size,) = struct.unpack("!i", await reader.readexactly(4))
    if not 8 <= size <= MAX_STARTUP:
        raise ProtocolError(f"a start-up packet of {size} bytes is refused")
    return Frame(b"", await reader.readexactly(size - 4))


async def read_frame(reader: asyncio.StreamReader, most: int = MAX_MESSAGE) -> Frame:
    """The next frame, of at most so many bytes. Raises IncompleteReadError if the client is gone."""
    kind, size = struct.unpack("!ci", await reader.readexactly(5))
    if kind not in KINDS:
        raise ProtocolError(f"a message of kind {kind!r} is not known")
    if not 4 <= size <= most:
        raise ProtocolError(f"a message of {size} bytes is refused")
    return Frame(kind, await reader.readexactly(size - 4))


class Fields:
    """A frame's body, read from its beginning. Raises ProtocolError if it ends too early, or is no UTF-8."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def int16(self) -> int:
        """A signed number."""
        return int.from_bytes(self.take(2), "big", signed=True)

    def int32(self) -> int:
        """A signed number."""
        return int.from_bytes(self.take(4), "big", signed=True)

    def take(self, size: int) -> bytes:
        """So many of them."""
        begin, self._at = self._at, self._at + size
        if size < 0 or self._at > len(self._body):
            raise ProtocolError("a message ends before what it says that it holds")
        return self._body[begin : self._at]

    def text(self) -> str:
        """Up to a zero byte."""
        end = self._body.find(b"\x00", self._at)
        if end < 0:
            raise ProtocolError("a text in a message has no end")
        begin, self._at = self._at, end + 1
        try:
            return self._body[begin:end].decode()
        except UnicodeDecodeError:
            raise ProtocolError("a text in a message is not UTF-8") from None

    def count(self) -> int:
        """A number of things that follow."""
        number = self.int16()
        if number < 0:
            raise ProtocolError(f"a message holds {number} of something")
        return number

    def value(self) -> bytes | None:
        """A length and so many bytes; a length of -1 is NULL."""
        size = self.int32()
        return None if size == -1 else self.take(size)

    def end(self) -> None:
        """There is no more."""
        if self._at != len(self._body):
            raise ProtocolError(f"a message holds {len(self._body) - self._at} bytes too many")


@dataclass(frozen=True)
class ColumnDescription:
    """One column of a row description. ``size``: the type's, -1 where it varies."""

    name: str
    oid: int
    size: int
    binary: bool


def frame(kind: bytes, body: bytes = b"") -> bytes:
    """A frame of the server's."""
    return kind + struct.pack("!i", len(body) + 4) + body


def text(value: str) -> bytes:
    """A text and a zero byte; a zero byte within it is left out."""
    return value.replace("\x00", "").encode(errors="replace") + b"\x00"


def parameter_status(name: str, value: str) -> bytes:
    """A setting as it is now."""
    return frame(b"S", text(name) + text(value))


def key_data(process: int, secret: int) -> bytes:
    """What a client has to tell who asks for its statement to be cancelled."""
    return frame(b"K", struct.pack("!II", process, secret))


def ready(status: bytes) -> bytes:
    """``I`` outside of a transaction, ``T`` in one, ``E`` in a failed one."""
    return frame(b"Z", status)


def error_response(error: PgError, severity: str = "ERROR") -> bytes:
    """``severity``: ERROR, or FATAL where the connection ends with it."""
    return frame(b"E", _notice(error, severity))


def notice_response(error: PgError, severity: str = "WARNING") -> bytes:
    """What is no error."""
    return frame(b"N", _notice(error, severity))


def _notice(error: PgError, severity: str) -> bytes:
    fields = {b"S": severity, b"V": severity, b"C": error.code, b"M": error.message or error.code}
    if error.hint:
        fields[b"H"] = error.hint
    return b"".join(key + text(value) for key, value in fields.items()) + b"\x00"


def parameter_description(oids: Sequence[int]) -> bytes:
    """The types of a statement's parameters."""
    return frame(b"t", struct.pack("!H", len(oids)) + b"".join(struct.pack("!I", oid) for oid in oids))


def row_description(columns: Iterable[ColumnDescription]) -> bytes:
    """The columns of the rows that follow, of no table."""
    made = [
        text(column.name) + struct.pack("!IhIhih", 0, 0, column.oid, column.size, -1, column.binary)
        for column in columns
    ]
    return frame(b"T", struct.pack("!H", len(made)) + b"".join(made))


def data_rows(columns: Sequence[Sequence[bytes | None]], rows: int) -> bytes:
    """One frame for each row, of the values of all columns."""
    fields = [[_NULL if v is None else _SIZE(len(v)) + v for v in values] for values in columns]
    count = struct.pack("!H", len(fields))
    bodies = (count + b"".join(row) for row in zip(*fields, strict=True)) if fields else (count for _ in range(rows))
    return b"".join([b"D" + _SIZE(len(body) + 4) + body for body in bodies])


_SIZE = struct.Struct("!i").pack
_NULL = _SIZE(-1)


def command_complete(tag: str) -> bytes:
    """The end of a statement, and what it was."""
    return frame(b"C", text(tag))


def copy_out(columns: int) -> bytes:
    """Text follows, of so many columns."""
    return frame(b"H", struct.pack("!bH", 0, columns) + b"\x00\x00" * columns)


def copy_data(lines: Sequence[bytes]) -> bytes:
    """One frame for each line."""
    return b"".join([b"d" + _SIZE(len(line) + 4) + line for line in lines])
