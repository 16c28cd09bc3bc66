"""Transactions that MySQL has compressed (binlog_transaction_compression): one event that has all the others in it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from dbt_incremental_dd.sources.connectors.mysql.binlog import HEADER, Event, Malformed, length

_END, _COMPRESSION = 0, 2
"""Fields before the payload: the last one, which has no value, and how it is compressed."""
_ZSTD, _NONE = 0, 255


def events(outer: Event) -> Iterator[Event]:
    """The events in it, which end where it ends and have no checksums; decompressed as they are read. Raises
    Malformed."""
    compression, at = _ZSTD, 0
    while True:
        field, at = length(outer.body, at)
        if field == _END:
            break
        size, at = length(outer.body, at)
        if field == _COMPRESSION:
            compression, _ = length(outer.body, at)
        at += size
    if compression not in (_ZSTD, _NONE):
        raise Malformed(f"a transaction is compressed in a way that is not known: {compression}")
    source = pa.BufferReader(pa.py_buffer(outer.body).slice(at))
    try:
        with pa.CompressedInputStream(source, "zstd") if compression == _ZSTD else source as stream:
            while head := stream.read(HEADER.size):
                began, kind, _, size, _, _ = HEADER.unpack(head)
                body = stream.read(size - HEADER.size)
                if len(body) != size - HEADER.size:
                    raise Malformed("a compressed transaction ends within an event")
                yield Event(outer.file, kind, outer.end, began, body)
    except OSError as error:
        raise Malformed(f"a transaction cannot be decompressed: {error}") from None
