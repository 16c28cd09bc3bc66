"""Rows of the log as cells: of each value the text that a SELECT has for it, or the bytes of a binary one.

How values lie in an event is told by the sources of MySQL ("log_event.h", "my_time.c") and its internals
manual.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from dbt_incremental_dd.sources.connectors.database_log.errors import ResyncRequired
from dbt_incremental_dd.sources.connectors.mysql import json_text, temporal
from dbt_incremental_dd.sources.connectors.mysql.binlog import Malformed, Rows, TableMap
from dbt_incremental_dd.sources.connectors.mysql.packed_decimal import packed_decimal
from dbt_incremental_dd.sources.connectors.mysql.tables import MysqlColumn
from dbt_incremental_dd.sources.connectors.mysql.types import ENUM_CODE, JSON_CODE, LOG_TYPES, SET_CODE, STRING_CODE

if TYPE_CHECKING:
    Read = Callable[[bytes, int], tuple[bytes, int]]
    Cells = tuple[bytes | None, ...]

_INTEGERS = {1: ("b", 1), 2: ("h", 2), 3: ("i", 4), 8: ("q", 8)}
_FLOATS = {4: ("<f", 4), 5: ("<d", 8)}
_TEMPORAL = {17: temporal.timestamp, 18: temporal.datetime, 19: temporal.time}


def require_same(map: TableMap, columns: Sequence[MysqlColumn], width: int) -> None:
    """Raises ResyncRequired where the table looked otherwise at that point of the log."""
    if len(map.types) != width:
        raise ResyncRequired("it had other columns")
    for column in columns:
        place = column.place
        if _kind(map.types[place], map.metas[place])[0] != LOG_TYPES[column.base.name]:
            raise ResyncRequired(f"its column {column.name} had another type")
        if map.names is not None and map.names[place] != column.name:
            raise ResyncRequired(f"its column {column.name} had another name")


class RowReader:
    """Reads the rows of a table; ``columns``: those that are wanted, in their order. Without them, all as the raw bytes
    that they are."""

    def __init__(self, map: TableMap, columns: Sequence[MysqlColumn] | None) -> None:
        by_place = {column.place: column for column in columns or ()}
        self._reads = [
            _read(*_kind(kind, meta), by_place.get(place))
            for place, (kind, meta) in enumerate(zip(map.types, map.metas, strict=True))
        ]
        self._places = None if columns is None else [column.place for column in columns]

    def of(self, found: Rows) -> Iterator[Cells]:
        """The rows; of an update each is twice, before and after. Raises Malformed."""
        at, data = found.at, found.data
        size = (found.width + 7) // 8
        while at < len(data):
            nulls = int.from_bytes(data[at : at + size], "little")
            at += size
            cells: list[bytes | None] = []
            for read in self._reads:
                if nulls & 1:
                    cells.append(None)
                else:
                    cell, at = read(data, at)
                    cells.append(cell)
                nulls >>= 1
            if at > len(data):
                raise Malformed("a row goes beyond its event")
            yield tuple(cells) if self._places is None else tuple([cells[place] for place in self._places])


def _kind(kind: int, meta: int) -> tuple[int, int]:
    """The type and what is to be known of it. Fixed strings, enumerations and sets are told apart by their metadata,
    which has the true type, and in two of its bits, inverted, the upper ones of the length."""
    if kind not in (STRING_CODE, 253):
        return kind, meta
    first, length = meta & 0xFF, meta >> 8
    if first & 0x30 != 0x30:
        return first | 0x30, length | (first & 0x30 ^ 0x30) << 4
    return first, length


def _read(kind: int, meta: int, column: MysqlColumn | None) -> Read:
    if kind in _INTEGERS:
        return _integer(*_INTEGERS[kind], is_unsigned=column is not None and column.base.is_unsigned)
    if kind == 9:
        return _middle(is_unsigned=column is not None and column.base.is_unsigned)
    if kind in _FLOATS:
        return _float(*_FLOATS[kind])
    if kind in _TEMPORAL:
        return _TEMPORAL[kind](meta)
    if kind == 10:
        return temporal.date
    if kind == 13:
        return temporal.year
    if kind == 246:
        return packed_decimal(meta & 0xFF, meta >> 8)
    if kind in (ENUM_CODE, SET_CODE):
        return _listed(meta, column, is_set=kind == SET_CODE)
    if kind == 16:
        return _bits((meta >> 8) + bool(meta & 0xFF))
    if kind in (15, STRING_CODE):
        return _bytes(1 if meta < 256 else 2, column)
    if kind == JSON_CODE and column is not None:
        return _json(meta)
    if kind in (JSON_CODE, 242, 252, 255):
        return _bytes(meta, column)
    raise Malformed(f"values of the log's type {kind} are not read")


def _integer(letter: str, size: int, *, is_unsigned: bool) -> Read:
    unpack = struct.Struct("<" + (letter.upper() if is_unsigned else letter)).unpack_from
    return lambda data, at: (b"%d" % unpack(data, at)[0], at + size)


def _middle(*, is_unsigned: bool) -> Read:
    def read(data: bytes, at: int) -> tuple[bytes, int]:
        return b"%d" % int.from_bytes(data[at : at + 3], "little", signed=not is_unsigned), at + 3

    return read


def _float(form: str, size: int) -> Read:
    unpack = struct.Struct(form).unpack_from
    return lambda data, at: (repr(unpack(data, at)[0]).encode(), at + size)


def _bits(size: int) -> Read:
    return lambda data, at: (b"%d" % int.from_bytes(data[at : at + size], "big"), at + size)


def _listed(size: int, column: MysqlColumn | None, *, is_set: bool) -> Read:
    values = () if column is None else column.values

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        number = int.from_bytes(data[at : at + size], "little")
        if column is None:
            return b"%d" % number, at + size
        if is_set:
            return b",".join(value for place, value in enumerate(values) if number >> place & 1), at + size
        return (values[number - 1] if number else b""), at + size

    return read


def _json(size: int) -> Read:
    read = _bytes(size, None)

    def shown(data: bytes, at: int) -> tuple[bytes, int]:
        found, at = read(data, at)
        return json_text.text(found), at

    return shown


def _bytes(size: int, column: MysqlColumn | None) -> Read:
    decode = None if column is None else column.decode
    length = 0 if column is None or column.base.name != "binary" else column.length

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        begin = at + size
        end = begin + int.from_bytes(data[at:begin], "little")
        found = data[begin:end]
        if length:
            found = found.ljust(length, b"\0")  # the log leaves these out
        return (found if decode is None else decode(found)), end

    def uuid(data: bytes, at: int) -> tuple[bytes, int]:
        found, at = read(data, at)
        return str(UUID(bytes=found.ljust(16, b"\0"))).encode(), at

    if column is not None and column.base.name == "uuid":
        return uuid

    return read
