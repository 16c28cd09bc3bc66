"""Frames on their way to a client. Whoever does not read them is not waited for for ever."""

from __future__ import annotations

import asyncio

import pyarrow as pa

from dbt_incremental_dd.serve.pgwire.messages import Described, data_rows, row_description
from dbt_incremental_dd.serve.pgwire.types import encoded, pg_type

STUCK = 60.0
"""Seconds after which a client that has read nothing of what waits for it is cut off."""


class Sender:
    """Belongs to one connection."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def write(self, data: bytes) -> None:
        """Whole frames."""
        self._writer.write(data)

    async def flush(self) -> None:
        """Waits until there is room for more. Raises ConnectionError where the client is gone, or is cut off."""
        transport = self._writer.transport
        while True:
            waiting = transport.get_write_buffer_size()
            try:
                async with asyncio.timeout(STUCK):
                    return await self._writer.drain()
            except TimeoutError:
                if transport.get_write_buffer_size() >= waiting:
                    transport.abort()
                    raise ConnectionAbortedError("the client does not read") from None


def is_binary(formats: tuple[int, ...], column: int) -> bool:
    """``formats``: none for text, one for all columns, or one for each."""
    if not formats:
        return False
    return bool(formats[0] if len(formats) == 1 else formats[column])


def described(schema: pa.Schema, formats: tuple[int, ...]) -> bytes:
    """The row description of these columns."""
    kinds = [pg_type(field.type) for field in schema]
    return row_description(
        Described(field.name, kind.oid, kind.size, is_binary(formats, at))
        for at, (field, kind) in enumerate(zip(schema, kinds, strict=True))
    )


def rows(table: pa.Table, formats: tuple[int, ...]) -> bytes:
    """A frame for each row."""
    columns = [encoded(column, is_binary(formats, at)) for at, column in enumerate(table.columns)]
    return data_rows(columns, table.num_rows)
