"""The binary log as the server sends it: events, by "Replication Protocol" of MySQL's internals manual and MariaDB's
"Replication Protocol".

Of the log only what tells of rows is decoded; what a row's values are is ``rows``' matter.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dbt_incremental_dd.sources.connectors.mysql.connection import Connection

QUERY, ROTATE, FORMAT, XID, EXECUTE_LOAD, TABLE_MAP, INCIDENT = 2, 4, 15, 16, 18, 19, 26
XA_PREPARE, PARTIAL_UPDATE, TRANSACTION_PAYLOAD, QUERY_COMPRESSED = 38, 39, 40, 165
_INSERT, _UPDATE, _DELETE = (23, 30, 166, 169), (24, 31, 167, 170), (25, 32, 168, 171)
_MYSQL = (30, 31, 32)
_SECOND = (*_MYSQL, 169, 170, 171)
"""Events of rows in their second version, which has a header that may grow."""
_HAS_CASCADES = 16
"""The flag of MySQL's events of rows (from 9.6 on) whose changes by foreign keys are in the log, too."""
_COMPRESSED = range(165, 172)
ROWS: Final = {
    **dict.fromkeys(_INSERT, "insert"),
    **dict.fromkeys(_UPDATE, "update"),
    **dict.fromkeys(_DELETE, "delete"),
}
"""What kinds of events do to rows."""

_COM_BINLOG_DUMP = 0x12
_NON_BLOCK = 1
_CRC32 = 1
HEADER: Final = struct.Struct("<IBIIIH")
"""Of an event: when it was begun, its kind, the server, its size, where it ends, flags."""
_COLUMN_NAMES = 4
"""The field of a table map's optional metadata that has the columns' names."""


class Malformed(ValueError):
    """The bytes are no event of this protocol."""


@dataclass(frozen=True)
class Event:
    """``end``: where it ends in ``file``, 0 for one that the server has made up; ``began``: seconds since 1970."""

    file: str
    kind: int
    end: int
    began: int
    body: bytes


@dataclass(frozen=True)
class TableMap:
    """What a table looks like to the events of rows that name its ``id``. ``names``: of its columns, if the server's
    binlog_row_metadata is FULL."""

    id: int
    schema: str
    table: str
    types: tuple[int, ...]
    metas: tuple[int, ...]
    names: tuple[str, ...] | None


@dataclass(frozen=True)
class Rows:
    """``present``: whether each column is there; of updates before and after. ``data``: the rows from ``at`` on.
    ``has_cascades``: whether the log has as rows, too, what these change by foreign keys."""

    table: int
    what: str
    present: tuple[bytes, ...]
    width: int
    data: bytes
    at: int
    has_cascades: bool

    @property
    def is_full(self) -> bool:
        """Whether all columns are there."""
        return all(_bits(bitmap) >= self.width for bitmap in self.present)


@dataclass(frozen=True)
class Query:
    """A statement, in the schema that was current."""

    schema: str
    text: str


def events(
    connection: Connection, file: str, offset: int, *, server_id: int, checksum: bool
) -> Generator[Event, None, None]:
    """The log from there on, up to where it ends at the moment; takes the connection, which is good for nothing else
    afterwards. ``checksum``: whether the server's binlog_checksum is CRC32."""
    connection.query("SET @master_binlog_checksum = @@global.binlog_checksum, @mariadb_slave_capability = 4")
    given = struct.pack("<IHI", offset, _NON_BLOCK, server_id) + file.encode()
    connection._execute_command(_COM_BINLOG_DUMP, given)
    while True:
        packet = connection._read_packet()
        if packet.is_eof_packet():
            return
        event = _event(packet.get_all_data()[1:], file, checksum=checksum)
        if event.kind == FORMAT:
            checksum = event.body[-5] == _CRC32
        yield event
        if event.kind == ROTATE:
            file, _ = rotation(event.body)


def _event(data: bytes, file: str, *, checksum: bool) -> Event:
    began, kind, _, size, end, _ = HEADER.unpack_from(data)
    if size != len(data):
        raise Malformed(f"an event of kind {kind} says that it has {size} bytes, and has {len(data)}")
    if kind == FORMAT:  # it says itself whether what follows, and it too, has checksums
        body, checksum = data[HEADER.size :], data[-5] == _CRC32
    else:
        body = data[HEADER.size : -4] if checksum else data[HEADER.size :]
    if checksum and zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "little"):
        raise Malformed(f"an event that ends at {end} of {file} has another checksum than it says")
    return Event(file, kind, end, began, body)


def rotation(body: bytes) -> tuple[str, int]:
    """The file in which the log goes on, and where."""
    return body[8:].decode(), int.from_bytes(body[:8], "little")


def table_id(body: bytes) -> int:
    """The number of a table map, or that of the table whose rows an event has."""
    return int.from_bytes(body[:6], "little")


def table_map(body: bytes) -> TableMap:
    """A table map's contents."""
    schema, at = _short_text(body, 8)
    table, at = _short_text(body, at)
    width, at = length(body, at)
    types = tuple(body[at : at + width])
    size, at = length(body, at + width)
    metas = _metas(types, body[at : at + size])
    at += size + (width + 7) // 8
    return TableMap(table_id(body), schema, table, types, metas, _names(body, at))


def rows(kind: int, body: bytes) -> Rows:
    """The rows of an event of ``ROWS``."""
    at = 8
    if kind in _SECOND:
        at += int.from_bytes(body[8:10], "little")
    width, at = length(body, at)
    bitmaps = []
    for _ in range(1 + (ROWS[kind] == "update")):
        bitmaps.append(body[at : at + (width + 7) // 8])
        at += (width + 7) // 8
    data, at = (_inflated(body[at:]), 0) if kind in _COMPRESSED else (body, at)
    has_cascades = kind in _MYSQL and bool(body[6] & _HAS_CASCADES)
    return Rows(table_id(body), ROWS[kind], tuple(bitmaps), width, data, at, has_cascades)


def query(kind: int, body: bytes) -> Query:
    """A statement's event."""
    schema_size, status_size = body[8], int.from_bytes(body[11:13], "little")
    at = 13 + status_size + (13 if kind == EXECUTE_LOAD else 0)
    text = body[at + schema_size + 1 :]
    if kind == QUERY_COMPRESSED:
        text = _inflated(text)
    schema = body[at : at + schema_size].decode(errors="replace")
    return Query(schema, text.decode(errors="replace"))


def is_one_phase(body: bytes) -> bool:
    """Whether what a XA_PREPARE ends is a commit."""
    return bool(body[0])


def _inflated(data: bytes) -> bytes:
    """MariaDB's compressed events (log_bin_compress): how many bytes the size has, the size, a stream of zlib's."""
    return zlib.decompress(data[1 + (data[0] & 7) :])


def _names(body: bytes, at: int) -> tuple[str, ...] | None:
    while at < len(body):
        kind = body[at]
        size, at = length(body, at + 1)
        if kind == _COLUMN_NAMES:
            found, end = [], at + size
            while at < end:
                chars, at = length(body, at)
                found.append(body[at : at + chars].decode())
                at += chars
            return tuple(found)
        at += size
    return None


_META_SIZES = {
    **dict.fromkeys((4, 5, 17, 18, 19, 140, 242, 245, 252, 255), 1),
    **dict.fromkeys((15, 16, 141, 246, 247, 248, 253, 254), 2),
}


def _metas(types: tuple[int, ...], data: bytes) -> tuple[int, ...]:
    """Of each column what its type alone does not say, as a whole number: little-endian."""
    found, at = [], 0
    for kind in types:
        size = _META_SIZES.get(kind, 0)
        found.append(int.from_bytes(data[at : at + size], "little"))
        at += size
    return tuple(found)


def _short_text(body: bytes, at: int) -> tuple[str, int]:
    end = at + 1 + body[at]
    return body[at + 1 : end].decode(), end + 1


def length(body: bytes, at: int) -> tuple[int, int]:
    """A length-encoded whole number, and where it ends."""
    first = body[at]
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(first)
    if size is None:
        return first, at + 1
    return int.from_bytes(body[at + 1 : at + 1 + size], "little"), at + 1 + size


def _bits(bitmap: bytes) -> int:
    return int.from_bytes(bitmap, "little").bit_count()
