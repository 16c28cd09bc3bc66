"""What the plugin pgoutput writes (protocol version 1), as PostgreSQL's "Logical Replication Message Formats" has it.

Values stay the bytes of their text form; types are another's matter.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from dbt_incremental_dd.sources.connectors.database_log.cells import UNCHANGED, Cell, Cells

_BEGIN = struct.Struct(">QqI")
_COMMIT = struct.Struct(">BQQq")
_ATTRIBUTE = struct.Struct(">Ii")
_RELATION_ID = struct.Struct(">I")
_COUNT = struct.Struct(">H")
_LENGTH = struct.Struct(">I")


@dataclass(frozen=True)
class Begin:
    """``commit``: where the transaction's commit record begins."""

    commit: int


@dataclass(frozen=True)
class Commit:
    """``end``: the position behind the transaction's commit record."""

    end: int


@dataclass(frozen=True)
class Attribute:
    """A column of a relation, and whether it belongs to the replica identity."""

    name: str
    type: int
    modifier: int
    is_key: bool


@dataclass(frozen=True)
class Relation:
    """What a relation looks like from here on in the log."""

    oid: int
    identity: str
    columns: tuple[Attribute, ...]


@dataclass(frozen=True)
class Insert:
    """A new row."""

    oid: int
    new: Cells


@dataclass(frozen=True)
class Update:
    """``old`` is there where the identity's columns have changed, and under REPLICA IDENTITY FULL (``is_full``)."""

    oid: int
    old: Cells | None
    is_full: bool
    new: Cells


@dataclass(frozen=True)
class Delete:
    """``old``: the identity's columns, or under REPLICA IDENTITY FULL all (``is_full``)."""

    oid: int
    old: Cells
    is_full: bool


@dataclass(frozen=True)
class Truncate:
    """All relations that one TRUNCATE has emptied."""

    oids: tuple[int, ...]


Message = Begin | Commit | Relation | Insert | Update | Delete | Truncate


class Malformed(ValueError):
    """The bytes are no message of this protocol."""


def decode(data: bytes) -> Message | None:
    """The message; None for kinds that say nothing about rows (origins, types, logical messages)."""
    try:
        return _decoded(data)
    except (struct.error, IndexError, UnicodeDecodeError, ValueError) as error:
        raise Malformed(f"{data[:40]!r} is no message of pgoutput: {error}") from error


def _decoded(data: bytes) -> Message | None:
    kind = data[:1]
    if kind in (b"I", b"U", b"D"):
        return _change(kind, data)
    if kind == b"B":
        return Begin(_BEGIN.unpack_from(data, 1)[0])
    if kind == b"C":
        return Commit(_COMMIT.unpack_from(data, 1)[2])
    if kind == b"R":
        return _relation(data)
    if kind == b"T":
        (count,) = _LENGTH.unpack_from(data, 1)
        return Truncate(struct.unpack_from(f">{count}I", data, 6))
    if kind in (b"O", b"Y", b"M"):
        return None
    raise Malformed(f"kind {kind!r} is not known")


def _change(kind: bytes, data: bytes) -> Insert | Update | Delete:
    (oid,) = _RELATION_ID.unpack_from(data, 1)
    part = data[5:6]
    if kind == b"I":
        return Insert(oid, _tuple(data, 6)[0])
    if kind == b"D":
        return Delete(oid, _tuple(data, 6)[0], part == b"O")
    if part == b"N":
        return Update(oid, None, False, _tuple(data, 6)[0])
    old, end = _tuple(data, 6)
    if data[end : end + 1] != b"N":
        raise Malformed("an update without a new row")
    return Update(oid, old, part == b"O", _tuple(data, end + 1)[0])


def _tuple(data: bytes, at: int) -> tuple[Cells, int]:
    """The values of a row, and where they end."""
    (count,) = _COUNT.unpack_from(data, at)
    at += 2
    cells: list[Cell] = []
    for _ in range(count):
        kind = data[at]
        at += 1
        if kind == 0x74:  # t
            (length,) = _LENGTH.unpack_from(data, at)
            end = at + 4 + length
            if end > len(data):
                raise Malformed("a value goes beyond the message")
            cells.append(data[at + 4 : end])
            at = end
        elif kind == 0x6E:  # n
            cells.append(None)
        elif kind == 0x75:  # u
            cells.append(UNCHANGED)
        else:
            raise Malformed(f"a value of kind {kind}")
    return tuple(cells), at


def _relation(data: bytes) -> Relation:
    (oid,) = _RELATION_ID.unpack_from(data, 1)
    _, at = _text(data, 5)
    _, at = _text(data, at)
    identity = chr(data[at])
    (count,) = _COUNT.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        is_key = bool(data[at] & 1)
        name, at = _text(data, at + 1)
        kind, modifier = _ATTRIBUTE.unpack_from(data, at)
        columns.append(Attribute(name, kind, modifier, is_key))
        at += _ATTRIBUTE.size
    return Relation(oid, identity, tuple(columns))


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1
