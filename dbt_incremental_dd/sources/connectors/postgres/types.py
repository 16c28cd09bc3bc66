"""PostgreSQL's types as Spark's, and values from their text: lossless, or an error that names the column.

What Spark has no type for is its text.
"""

from __future__ import annotations

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
from dbt_incremental_dd.sources.connectors.database_log.values import from_text

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
    """Values of a Spark type from PostgreSQL's text. Raises DatabaseError, naming the column and a value
    that has no form."""
    if dtype == BOOLEAN:
        return pc.equal(texts, "t")
    if dtype == BINARY:
        decoded = [None if text is None else bytes.fromhex(text[2:]) for text in texts.to_pylist()]
        return pa.chunked_array([pa.array(decoded, pa.binary())])
    if base == "timestamptz" and dtype == TIMESTAMP:
        texts = pc.replace_substring(texts, "+00", "")
    return from_text(texts, name, base, dtype)
