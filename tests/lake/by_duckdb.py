"""Reads an open table by DuckDB's own extension, in an environment that has a DuckDB for which it is published.

Run as a program: it writes the rows of each table that its arguments name, pickled. It knows nothing of this project.
"""

from __future__ import annotations

import pickle
import sys

import duckdb

from tests.duckdb_extension import load

_SCANS = {
    "delta": "delta_scan('{}')",
    "iceberg": "iceberg_scan('{}', version = '?', version_name_format = 'v%s%s.metadata.json')",
}


def main(format: str, *uris: str) -> None:
    """Writes a list of rows for each table."""
    with duckdb.connect() as connection:
        for name in ("avro", format):
            load(connection, name)
        connection.execute("SET TimeZone = 'UTC'")
        found = [connection.execute(f"SELECT * FROM {_SCANS[format].format(uri)}").fetchall() for uri in uris]
    sys.stdout.buffer.write(pickle.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
