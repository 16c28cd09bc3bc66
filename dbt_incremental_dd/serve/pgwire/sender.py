"""Writes frames to a client, subject to the write timeout."""

from __future__ import annotations

import asyncio

import pyarrow as pa

from dbt_incremental_dd.serve.pgwire.messages import ColumnDescription, data_rows, row_description
from dbt_incremental_dd.serve.pgwire.types import encode, pg_type
from dbt_incremental_dd.serve.write_timeout import WriteTimeout


class Sender:
    """Belongs to one connection."""

    def __init__(self, writer: asyncio.StreamWriter, write_timeout: WriteTimeout) -> None:
        self._writer = writer
        self._write_timeout = write_timeout

    def write(self, data: bytes) -> None:
        """Writes whole frames to the buffer."""
        self._writer.write(data)

    async def flush(self) -> None:
        """Waits until there is room for more. Raises ConnectionError if the client is gone or too slow."""
        await self._write_timeout.wait(self._writer.transport, self._writer.drain)


def is_binary(formats: tuple[int, ...], column: int) -> bool:
    """Whether a column is binary. ``formats``: none for text, one for all columns, or one for each."""
    if not formats:
        return False
    return bool(formats[0] if len(formats) == 1 else formats[column])


def describe_rows(schema: pa.Schema, formats: tuple[int, ...]) -> bytes:
    """The RowDescription of these columns."""
    kinds = [pg_type(field.type) for field in schema]
    return row_description(
        ColumnDescription(field.name, kind.oid, kind.size, is_binary(formats, at))
        for at, (field, kind) in enumerate(zip(schema, kinds, strict=True))
    )


def rows(table: pa.Table, formats: tuple[int, ...]) -> bytes:
    """A DataRow for each row."""
    columns = [encode(column, binary=is_binary(formats, at)) for at, column in enumerate(table.columns)]
    return data_rows(columns, table.num_rows)
