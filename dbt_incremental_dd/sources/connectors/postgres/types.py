"""PostgreSQL's types as Spark's, and values from their text: lossless, or an error that names the column.

What Spark has no type for is its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    FLOATS,
    INTEGER,
    INTEGERS,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    Type,
)
from dbt_incremental_dd.sources.connectors.postgres.connection import PostgresError
from dbt_incremental_dd.trace.arrow import arrow_type

_SAME = {
    "bool": BOOLEAN,
    "int2": SHORT,
    "int4": INTEGER,
    "int8": LONG,
    "oid": LONG,
    "float4": FLOAT,
    "float8": DOUBLE,
    "date": DATE,
    "timestamp": TIMESTAMP_NTZ,
    "timestamptz": TIMESTAMP,
    "bytea": BINARY,
}
_DATE = r"^\d{4}-\d\d-\d\d$"
_TIMESTAMP = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?(\+00)?$"
_ALLOWED: dict[str, tuple[Type, ...]] = {
    "bool": (BOOLEAN,),
    **dict.fromkeys(("int2", "int4", "int8", "oid"), (*INTEGERS, DOUBLE)),
    "numeric": (*FLOATS, *INTEGERS),
    "float4": FLOATS,
    "float8": (DOUBLE,),
    "date": (DATE,),
    "timestamp": (TIMESTAMP_NTZ, TIMESTAMP),
    "timestamptz": (TIMESTAMP,),
    "bytea": (BINARY,),
}
"""What a column may be declared as, besides string."""
_EXACT = ("int2", "int4", "int8", "oid", "numeric")
"""Types that may also be declared as any decimal."""


def spark_type(base: str, modifier: int) -> Type:
    """The Spark type that holds all values of a type, by its name in pg_type; ``modifier`` as in atttypmod."""
    if base == "numeric" and modifier >= 4:
        precision, scale = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF
        scale = (scale ^ 1024) - 1024  # PostgreSQL 15 has negative scales
        return Decimal(precision, scale) if precision <= 38 and 0 <= scale <= precision else STRING
    return _SAME.get(base, STRING)


def may_be(base: str, declared: Type) -> bool:
    """Whether a column of the type can be declared so."""
    if isinstance(declared, Decimal):
        return base in _EXACT
    return declared == STRING or declared in _ALLOWED.get(base, ())


def converted(texts: pa.ChunkedArray, name: str, base: str, dtype: Type) -> pa.ChunkedArray:
    """Values of a Spark type from PostgreSQL's text. Raises PostgresError, naming the column and a value that
    has no form."""
    wanted = arrow_type(dtype)
    if dtype == STRING:
        return texts
    if dtype == BOOLEAN:
        return pc.equal(texts, "t")
    if dtype == BINARY:
        decoded = [None if text is None else bytes.fromhex(text[2:]) for text in texts.to_pylist()]
        return pa.chunked_array([pa.array(decoded, pa.binary())])
    if dtype == DATE:
        _require(texts, _DATE, name, base)
    elif dtype in (TIMESTAMP, TIMESTAMP_NTZ):
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
    texts: pa.ChunkedArray, name: str, base: str, dtype: Type, cast: Callable[[pa.ChunkedArray], object]
) -> PostgresError:
    """The error for the first value that cannot be cast."""
    for text in pc.unique(texts).to_pylist():
        try:
            cast(pa.chunked_array([pa.array([text], pa.string())]))
        except pa.ArrowException:
            return _no_form(name, base, str(text), dtype)
    return _no_form(name, base, "a value", dtype)


def _no_form(name: str, base: str, value: str, dtype: Type | None = None) -> PostgresError:
    kind = str(dtype or {"date": DATE}.get(base, TIMESTAMP))
    return PostgresError(
        f"column {name} ({base}) holds {value[:40]!r}, which Spark's {kind.replace('integer', 'int')} cannot hold",
        f"Declare the column with data_type string, and take the source in anew; or correct the rows with that {name}.",
    )
