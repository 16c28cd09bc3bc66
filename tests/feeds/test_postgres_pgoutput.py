"""The messages of pgoutput, as bytes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt_incremental_dd.sources.connectors.database_log.cells import Unchanged
from dbt_incremental_dd.sources.connectors.postgres.pgoutput import (
    UNCHANGED,
    Attribute,
    Begin,
    Cells,
    Commit,
    Delete,
    Insert,
    Malformed,
    Message,
    Relation,
    Truncate,
    Update,
    decode,
)


def row(cells: Cells) -> bytes:
    found = struct.pack(">H", len(cells))
    for cell in cells:
        if isinstance(cell, bytes):
            found += b"t" + struct.pack(">I", len(cell)) + cell
        else:
            found += b"u" if isinstance(cell, Unchanged) else b"n"
    return found


def encode(message: Message) -> bytes:
    if isinstance(message, Begin):
        return b"B" + struct.pack(">QqI", message.commit, 7, 9)
    if isinstance(message, Commit):
        return b"C" + struct.pack(">BQQq", 0, 1, message.end, 7)
    if isinstance(message, Relation):
        found = b"R" + struct.pack(">I", message.oid) + b"public\0t\0" + message.identity.encode()
        found += struct.pack(">H", len(message.columns))
        for one in message.columns:
            found += bytes([one.is_key]) + one.name.encode() + b"\0" + struct.pack(">Ii", one.type, one.modifier)
        return found
    if isinstance(message, Truncate):
        return b"T" + struct.pack(f">IB{len(message.oids)}I", len(message.oids), 1, *message.oids)
    letter = type(message).__name__[0].encode()
    found = letter + struct.pack(">I", message.oid)
    if not isinstance(message, Insert) and message.old is not None:
        found += (b"O" if message.is_full else b"K") + row(message.old)
    return found if isinstance(message, Delete) else found + b"N" + row(message.new)


numbers = st.integers(0, 2**32 - 1)
places = st.integers(0, 2**64 - 1)
rows = st.lists(st.one_of(st.none(), st.just(UNCHANGED), st.binary(max_size=20)), max_size=5).map(tuple)
names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9)
attributes = st.builds(Attribute, names, numbers, st.integers(-(2**31), 2**31 - 1), st.booleans())
updates = st.builds(Update, numbers, rows, st.booleans(), rows) | st.builds(
    Update, numbers, st.none(), st.just(False), rows
)
messages = st.one_of(
    st.builds(Begin, places),
    st.builds(Commit, places),
    st.builds(Relation, numbers, st.sampled_from("dinf"), st.lists(attributes, max_size=4).map(tuple)),
    st.builds(Insert, numbers, rows),
    updates,
    st.builds(Delete, numbers, rows, st.booleans()),
    st.builds(Truncate, st.lists(numbers, max_size=4).map(tuple)),
)


@given(messages)
def test_every_message_is_what_its_bytes_say(message: Message) -> None:
    assert decode(encode(message)) == message


@given(messages, st.integers(1, 60))
def test_a_message_that_was_cut_is_refused(message: Message, cut: int) -> None:
    data = encode(message)
    with pytest.raises(Malformed):
        decode(data[: max(0, len(data) - cut)] if not isinstance(message, Begin | Commit) else data[:9])


def test_messages_that_say_nothing_about_rows() -> None:
    for letter in b"OYM":
        assert decode(bytes([letter]) + b"whatever") is None
    with pytest.raises(Malformed, match="not known"):
        decode(b"S123")
