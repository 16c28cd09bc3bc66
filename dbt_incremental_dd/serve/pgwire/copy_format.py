"""Rows in the formats of COPY ... TO STDOUT: text or CSV, one line a row."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa

from dbt_incremental_dd.serve.pgwire.statements import Copy
from dbt_incremental_dd.serve.pgwire.types import encode

_ESCAPES = {
    **{b"\\": b"\\\\", b"\b": b"\\b", b"\f": b"\\f", b"\n": b"\\n", b"\r": b"\\r", b"\t": b"\\t", b"\v": b"\\v"},
}


def header(copy: Copy, schema: pa.Schema) -> list[bytes]:
    """A line with the column names, if requested."""
    quoted = _quoter(copy)
    delimiter = copy.delimiter.encode()
    return [delimiter.join(quoted(name.encode()) for name in schema.names) + b"\n"] if copy.header else []


def lines(copy: Copy, table: pa.Table) -> list[bytes]:
    """The rows, one line each."""
    quoted, null, delimiter = _quoter(copy), copy.null.encode(), copy.delimiter.encode()
    columns = [[null if v is None else quoted(v) for v in encode(column, binary=False)] for column in table.columns]
    if not columns:
        return [b"\n"] * table.num_rows
    return [delimiter.join(row) + b"\n" for row in zip(*columns, strict=True)]


def _quoter(copy: Copy) -> Callable[[bytes], bytes]:
    if copy.form == "text":
        escapes = {**_ESCAPES, copy.delimiter.encode(): b"\\" + copy.delimiter.encode()}
        escapes[b"\t"] = b"\\t"
        pattern = re.compile(b"[" + b"".join(re.escape(one) for one in escapes) + b"]")
        return lambda value: pattern.sub(lambda match: escapes[match[0]], value)
    special = re.compile(b'[\r\n"' + re.escape(copy.delimiter.encode()) + b"]")
    null = copy.null.encode()

    def quoted(value: bytes) -> bytes:
        # What would be read as NULL, or as the end of the data, is quoted to remain a value.
        if value in (null, b"\\.") or special.search(value):
            return b'"' + value.replace(b'"', b'""') + b'"'
        return value

    return quoted
