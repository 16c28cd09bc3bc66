"""A slice of TPC-DS's data as Parquet files, and its queries, by DuckDB's extension.

Run as a program, with a folder and a scale factor, by an environment that has a DuckDB for which it is published. It
knows nothing of this project.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb

from tests.duckdb_extension import load

_SOLD = {
    "store_sales": ("ss_item_sk", "ss_ticket_number"),
    "store_returns": ("sr_item_sk", "sr_ticket_number"),
    "catalog_sales": ("cs_item_sk", "cs_order_number"),
    "catalog_returns": ("cr_item_sk", "cr_order_number"),
    "web_sales": ("ws_item_sk", "ws_order_number"),
    "web_returns": ("wr_item_sk", "wr_order_number"),
}
"""Facts by the item and the order. Of some items and of some orders all rows are taken, so that joins by either have
rows."""
_ITEMS, _ORDERS, _STOCK = 100, 200, 3000
"""At scale 1, one of so many."""
_NAMED = {
    "customer": ("c_customer_sk", "customer"),
    "date_dim": ("d_date_sk", "date"),
    "time_dim": ("t_time_sk", "time"),
    "item": ("i_item_sk", "item"),
    "customer_address": ("ca_address_sk", "addr"),
    "customer_demographics": ("cd_demo_sk", "cdemo"),
    "household_demographics": ("hd_demo_sk", "hdemo"),
    "catalog_page": ("cp_catalog_page_sk", "catalog_page"),
}
"""Large dimensions by key, and a word in the names of columns that refer to it. The rows that are referred to are
taken, customers first, who refer to others."""


def main(folder: Path, scale: float) -> None:
    """Writes ``<table>.parquet`` for 24 tables, and ``queries.json``: texts by number, in DuckDB's dialect."""
    with duckdb.connect() as connection:
        load(connection, "tpcds")
        connection.execute(f"CALL dsdgen(sf = {scale})")
        items, orders, stock = (max(round(one_of * scale), 1) for one_of in (_ITEMS, _ORDERS, _STOCK))
        for table, (item, order) in _SOLD.items():
            is_other = f"{item} % {items} <> 0 AND {order} % {orders} <> 0"
            connection.execute(f"DELETE FROM {table} WHERE {is_other}")
        connection.execute(f"DELETE FROM inventory WHERE hash(inv_item_sk, inv_date_sk) % {stock} <> 0")
        tables = [
            name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
        ]
        for table in _NAMED:
            _keep_named(connection, table, tables)
        for table in tables:
            connection.execute(f"COPY (SELECT * FROM {table} ORDER BY ALL) TO '{folder}/{table}.parquet'")
        queries = connection.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY 1").fetchall()
    (folder / "queries.json").write_text(json.dumps(dict(queries)))


def _keep_named(connection: duckdb.DuckDBPyConnection, table: str, tables: list[str]) -> None:
    key, word = _NAMED[table]
    found = connection.execute("SELECT table_name, column_name FROM duckdb_columns() ORDER BY ALL").fetchall()
    references = [
        f"SELECT {column} FROM {other}"
        for other, column in found
        if other in tables and other != table and word in column and column.endswith("_sk")
    ]
    named = f"SELECT k FROM ({' UNION '.join(references)}) AS t(k) WHERE k IS NOT NULL"
    connection.execute(f"DELETE FROM {table} WHERE {key} NOT IN ({named})")


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
