"""A table's rows as of an exported snapshot."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as pc

from dbt_incremental_dd.sources.connectors.database_log.spool import MOST_BYTES, Spool
from dbt_incremental_dd.sources.connectors.postgres.connection import PostgresError
from dbt_incremental_dd.sources.connectors.postgres.tables import PostgresTable, quote_identifier
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from dbt_incremental_dd.sources.connectors.postgres.connection import Connection


def begin(connection: Connection, snapshot: str) -> None:
    """A transaction that sees what the snapshot has."""
    connection.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
    connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")


def copied(connection: Connection, storage: Storage, table: PostgresTable) -> Spool:
    """All rows of the table as the transaction sees them."""
    spool = Spool(storage, table.records)
    names = ", ".join(quote_identifier(column.name) for column in table.columns)
    only = "" if table.is_partitioned else "ONLY "
    query = f"COPY (SELECT {names} FROM {only}{table.sql}) TO STDOUT (FORMAT csv, FORCE_QUOTE *)"
    block, rows = io.BytesIO(), 0
    try:
        with connection.cursor() as cursor, cursor.copy(query) as copy:
            for line in copy:
                block.write(line)
                rows += 1
                if spool.wants(rows, block.tell()):
                    spool.add(_parsed(table, block))
                    block, rows = io.BytesIO(), 0
        if rows:
            spool.add(_parsed(table, block))
    except BaseException:
        spool.remove()
        raise
    return spool


def _parsed(table: PostgresTable, block: io.BytesIO) -> pa.Table:
    names = [column.name for column in table.columns]
    size = block.tell()
    block.seek(0)
    try:
        found = pc.read_csv(
            block,
            read_options=pc.ReadOptions(column_names=names, block_size=max(size, MOST_BYTES) + 1, use_threads=False),
            parse_options=pc.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=pc.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowException as error:
        raise PostgresError(f"rows of {table.sql} cannot be read: {error}", "Correct what is no UTF-8.") from None
    return pa.table(dict(zip(names, table.typed(found.columns), strict=True)))
