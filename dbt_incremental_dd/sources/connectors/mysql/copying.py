"""A table's rows as of a transaction's snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dbt_incremental_dd.sources.connectors.database_log.spool import Spool
from dbt_incremental_dd.sources.connectors.mysql.tables import MysqlTable
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from dbt_incremental_dd.sources.connectors.mysql.connection import Connection

_AT_A_TIME = 1_000


def copied(connection: Connection, storage: Storage, table: MysqlTable) -> Spool:
    """All rows of the table as the transaction sees them."""
    from pymysql.cursors import SSCursor

    spool = Spool(storage, table.records)
    query = f"SELECT {', '.join(column.select for column in table.columns)} FROM {table.sql}"
    found: list[tuple[Any, ...]] = []
    size = 0
    try:
        with connection.cursor(SSCursor) as cursor:
            cursor.execute(query)
            while rows := cursor.fetchmany(_AT_A_TIME):
                for row in rows:
                    found.append(row)
                    size += sum(len(value) for value in row if value is not None) + 16 * len(row)
                    if spool.wants(len(found), size):
                        spool.add(_parsed(table, found))
                        found, size = [], 0
        if found:
            spool.add(_parsed(table, found))
    except BaseException:
        spool.remove()
        raise
    return spool


def _parsed(table: MysqlTable, found: list[tuple[Any, ...]]) -> pa.Table:
    columns = [
        pa.chunked_array([pa.array(values, pa.binary() if column.base.is_binary else pa.string())])
        for values, column in zip(zip(*found, strict=True), table.columns, strict=True)
    ]
    return pa.table(dict(zip(table.records.names, table.typed(columns), strict=True)))
