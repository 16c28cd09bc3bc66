"""PostgreSQL's types as Spark's, and values from their text: lossless, or an error that names the column.

What Spark has no type for is its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.sources.connectors.postgres.connection import PostgresError
from dbt_incremental_dd.trace.arrow import arrow_type

_SAME = {
    "bool": "boolean",
    "int2": "short",
    "int4": "integer",
    "int8": "long",
    "oid": "long",
    "float4": "float",
    "float8": "double",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "bytea": "binary",
}
_DATE = r"^\d{4}-\d\d-\d\d$"
_TIMESTAMP = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?(\+00)?$"
_INTEGERS = ("byte", "short", "integer", "long")
_ALLOWED: dict[str, tuple[str, ...]] = {
    "bool": ("boolean",),
    **dict.fromkeys(("int2", "int4", "int8", "oid"), (*_INTEGERS, "decimal", "double")),
    "numeric": ("decimal", "float", "double", *_INTEGERS),
    "float4": ("float", "double"),
    "float8": ("double",),
    "date": ("date",),
    "timestamp": ("timestamp_ntz", "timestamp"),
    "timestamptz": ("timestamp",),
    "bytea": ("binary",),
}
"""What a column may be declared as, besides string."""


def spark_type(base: str, modifier: int) -> str:
    """The Spark type that holds all values of a type, by its name in pg_type; ``modifier`` as in atttypmod."""
    if base == "numeric" and modifier >= 4:
        precision, scale = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF
        scale = (scale ^ 1024) - 1024  # PostgreSQL 15 has negative scales
        return f"decimal({precision},{scale})" if precision <= 38 and 0 <= scale <= precision else "string"
    return _SAME.get(base, "string")


def may_be(base: str, declared: str) -> bool:
    """Whether a column of the type can be declared so."""
    return declared == "string" or declared.split("(")[0] in _ALLOWED.get(base, ())


def converted(texts: pa.ChunkedArray, name: str, base: str, dtype: str) -> pa.ChunkedArray:
    """Values of a Spark type from PostgreSQL's text. Raises PostgresError, naming the column and a value that
    has no form."""
    wanted = arrow_type(dtype)
    if dtype == "string":
        return texts
    if dtype == "boolean":
        return pc.equal(texts, "t")
    if dtype == "binary":
        decoded = [None if text is None else bytes.fromhex(text[2:]) for text in texts.to_pylist()]
        return pa.chunked_array([pa.array(decoded, pa.binary())])
    if dtype == "date":
        _require(texts, _DATE, name, base)
    elif dtype in ("timestamp", "timestamp_ntz"):
        _require(texts, _TIMESTAMP, name, base)
        texts = pc.replace_substring(texts, "+00", "") if base == "timestamptz" else texts
    try:
        return _cast(texts, wanted)
    except pa.ArrowException:
        raise _unfit(texts, name, base, dtype, lambda one: _cast(one, wanted)) from None


def _cast(texts: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_timestamp(wanted):
        return texts.cast(pa.timestamp("us")).cast(wanted)
    if pa.types.is_floating(wanted):
        # Both zeros are equal, there and in Spark, and only one of them can be found again by its value.
        return pc.add(texts.cast(wanted), pa.scalar(0, wanted))
    return texts.cast(wanted)


def _require(texts: pa.ChunkedArray, pattern: str, name: str, base: str) -> None:
    fits = pc.match_substring_regex(texts, pattern)
    if pc.all(pc.fill_null(fits, True)).as_py() is False:
        value = next(text for text in texts.to_pylist() if text is not None and not re.match(pattern, text))
        raise _no_form(name, base, value)


def _unfit(
    texts: pa.ChunkedArray, name: str, base: str, dtype: str, cast: Callable[[pa.ChunkedArray], object]
) -> PostgresError:
    """The error for the first value that cannot be cast."""
    for text in pc.unique(texts).to_pylist():
        try:
            cast(pa.chunked_array([pa.array([text], pa.string())]))
        except pa.ArrowException:
            return _no_form(name, base, str(text), dtype)
    return _no_form(name, base, "a value", dtype)


def _no_form(name: str, base: str, value: str, dtype: str = "") -> PostgresError:
    kind = dtype or {"date": "date"}.get(base, "timestamp")
    return PostgresError(
        f"column {name} ({base}) holds {value[:40]!r}, which Spark's {kind.replace('integer', 'int')} cannot hold",
        f"Declare the column with data_type string, and take the source in anew; or correct the rows with that {name}.",
    )
