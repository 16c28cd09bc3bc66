"""The frames of protocol version 3: how they are laid out, not what they are for. A client's frame is a byte that
states its kind, a length that includes itself, and a body; start-up packets have no kind."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dbt_incremental_dd.serve.pgwire.errors import PgError, ProtocolError

MAX_STARTUP = 10_000
MAX_MESSAGE = 16 * 1024 * 1024

KINDS = frozenset(bytes([kind]) for kind in b"QPBDECHSXpdcf")
"""Kinds of messages that a client may send."""

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
    """``kind``: one byte; empty for a start-up packet."""

    kind: bytes
    body: bytes


async def read_startup(reader: asyncio.StreamReader) -> Frame:
    """The packet that opens a connection. Raises IncompleteReadError if the client is gone, ProtocolError if it is
    malformed."""
    (size,) = struct.unpack("!i", await reader.readexactly(4))
    if not 8 <= size <= MAX_STARTUP:
        raise ProtocolError(f"a start-up packet of {size} bytes is refused")
    return Frame(b"", await reader.readexactly(size - 4))


async def read_frame(reader: asyncio.StreamReader, most: int = MAX_MESSAGE) -> Frame:
    """The next frame, of at most ``most`` bytes. Raises IncompleteReadError if the client is gone, ProtocolError if it
    is malformed."""
    kind, size = struct.unpack("!ci", await reader.readexactly(5))
    if kind not in KINDS:
        raise ProtocolError(f"a message of kind {kind!r} is not known")
    if not 4 <= size <= most:
        raise ProtocolError(f"a message of {size} bytes is refused")
    return Frame(kind, await reader.readexactly(size - 4))


class Fields:
    """Reads a frame's body field by field. Raises ProtocolError if it is too short, or not UTF-8."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def int16(self) -> int:
        """A signed 16-bit integer."""
        return int.from_bytes(self.take(2), "big", signed=True)

    def int32(self) -> int:
        """A signed 32-bit integer."""
        return int.from_bytes(self.take(4), "big", signed=True)

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        begin, self._at = self._at, self._at + size
        if size < 0 or self._at > len(self._body):
            raise ProtocolError("a message is shorter than its contents")
        return self._body[begin : self._at]

    def text(self) -> str:
        """A zero-terminated string."""
        end = self._body.find(b"\x00", self._at)
        if end < 0:
            raise ProtocolError("a text in a message has no end")
        begin, self._at = self._at, end + 1
        try:
            return self._body[begin:end].decode()
        except UnicodeDecodeError:
            raise ProtocolError("a text in a message is not UTF-8") from None

    def count(self) -> int:
        """The number of entries that follow."""
        number = self.int16()
        if number < 0:
            raise ProtocolError(f"a message has a count of {number}")
        return number

    def value(self) -> bytes | None:
        """A length and as many bytes; None (NULL) if the length is -1."""
        size = self.int32()
        return None if size == -1 else self.take(size)

    def end(self) -> None:
        """Raises ProtocolError unless all has been read."""
        if self._at != len(self._body):
            raise ProtocolError(f"a message has {len(self._body) - self._at} bytes too many")


@dataclass(frozen=True)
class ColumnDescription:
    """One column of a RowDescription. ``size``: the type's in bytes, -1 if it varies."""

    name: str
    oid: int
    size: int
    binary: bool


def frame(kind: bytes, body: bytes = b"") -> bytes:
    """A frame from the server."""
    return kind + struct.pack("!i", len(body) + 4) + body


def text(value: str) -> bytes:
    """A zero-terminated string; zero bytes inside are dropped."""
    return value.replace("\x00", "").encode(errors="replace") + b"\x00"


def parameter_status(name: str, value: str) -> bytes:
    """ParameterStatus: a setting's current value."""
    return frame(b"S", text(name) + text(value))


def key_data(process: int, secret: int) -> bytes:
    """BackendKeyData: the key of the client's cancel requests."""
    return frame(b"K", struct.pack("!II", process, secret))


def ready(status: bytes) -> bytes:
    """ReadyForQuery. ``status``: ``I`` outside of a transaction, ``T`` inside, ``E`` in a failed one."""
    return frame(b"Z", status)


def error_response(error: PgError, severity: str = "ERROR") -> bytes:
    """ErrorResponse. ``severity``: ERROR, or FATAL if the connection ends."""
    return frame(b"E", _notice(error, severity))


def notice_response(error: PgError, severity: str = "WARNING") -> bytes:
    """NoticeResponse."""
    return frame(b"N", _notice(error, severity))


def _notice(error: PgError, severity: str) -> bytes:
    fields = {b"S": severity, b"V": severity, b"C": error.code, b"M": error.message or error.code}
    if error.hint:
        fields[b"H"] = error.hint
    return b"".join(key + text(value) for key, value in fields.items()) + b"\x00"


def parameter_description(oids: Sequence[int]) -> bytes:
    """ParameterDescription: the types of a statement's parameters."""
    return frame(b"t", struct.pack("!H", len(oids)) + b"".join(struct.pack("!I", oid) for oid in oids))


def row_description(columns: Iterable[ColumnDescription]) -> bytes:
    """RowDescription, for columns that belong to no table."""
    made = [
        text(column.name) + struct.pack("!IhIhih", 0, 0, column.oid, column.size, -1, column.binary)
        for column in columns
    ]
    return frame(b"T", struct.pack("!H", len(made)) + b"".join(made))


def data_rows(columns: Sequence[Sequence[bytes | None]], rows: int) -> bytes:
    """A DataRow for each row, from the values of all columns."""
    fields = [[_NULL if v is None else _SIZE(len(v)) + v for v in values] for values in columns]
    count = struct.pack("!H", len(fields))
    bodies = (count + b"".join(row) for row in zip(*fields, strict=True)) if fields else (count for _ in range(rows))
    return b"".join([b"D" + _SIZE(len(body) + 4) + body for body in bodies])


_SIZE = struct.Struct("!i").pack
_NULL = _SIZE(-1)


def command_complete(tag: str) -> bytes:
    """CommandComplete."""
    return frame(b"C", text(tag))


def copy_out(columns: int) -> bytes:
    """CopyOutResponse, in text format."""
    return frame(b"H", struct.pack("!bH", 0, columns) + b"\x00\x00" * columns)


def copy_data(lines: Sequence[bytes]) -> bytes:
    """A CopyData frame for each line."""
    return b"".join([b"d" + _SIZE(len(line) + 4) + line for line in lines])
