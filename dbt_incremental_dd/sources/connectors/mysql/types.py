"""Types of MariaDB and MySQL as Spark's, and values from their text: lossless, or an error that names the column."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import (
    BINARY,
    BOOLEAN,
    BYTE,
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
from dbt_incremental_dd.sources.connectors.database_log.values import from_text, require

_WHOLE = {
    "tinyint": (BYTE, SHORT),
    "smallint": (SHORT, INTEGER),
    "mediumint": (INTEGER, INTEGER),
    "int": (INTEGER, LONG),
}
"""With a sign, and without."""
_SAME = {
    "bigint": LONG,
    "year": INTEGER,
    "float": FLOAT,
    "double": DOUBLE,
    "date": DATE,
    "datetime": TIMESTAMP_NTZ,
    "timestamp": TIMESTAMP,
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), BINARY),
}
_NUMBERS = (*_WHOLE, "bigint", "year", "bit")
_ALLOWED: dict[str, tuple[Type, ...]] = {
    **dict.fromkeys(_NUMBERS, (*INTEGERS, DOUBLE)),
    "tinyint": (BOOLEAN, *INTEGERS, DOUBLE),
    "bit": (BOOLEAN, *INTEGERS, DOUBLE),
    "decimal": (*FLOATS, *INTEGERS),
    "float": FLOATS,
    "double": (DOUBLE,),
    "date": (DATE,),
    "datetime": (TIMESTAMP_NTZ, TIMESTAMP),
    "timestamp": (TIMESTAMP,),
}
"""What a column may be declared as, besides string."""


STRING_CODE, ENUM_CODE, SET_CODE, JSON_CODE = 254, 247, 248, 245
LOG_TYPES = {
    **{"tinyint": 1, "smallint": 2, "mediumint": 9, "int": 3, "bigint": 8, "float": 4, "double": 5, "decimal": 246},
    **{"date": 10, "datetime": 18, "timestamp": 17, "time": 19, "year": 13, "bit": 16},
    **dict.fromkeys(("varchar", "varbinary"), 15),
    **dict.fromkeys(("char", "binary", "uuid"), STRING_CODE),
    **{"enum": ENUM_CODE, "set": SET_CODE, "json": JSON_CODE},
    **dict.fromkeys(("tinytext", "text", "mediumtext", "longtext"), 252),
    **dict.fromkeys(("tinyblob", "blob", "mediumblob", "longblob"), 252),
}
"""The numbers that the log has for types."""


@dataclass(frozen=True)
class Base:
    """A type by its name in information_schema; ``precision``: digits of a number, or bits."""

    name: str
    is_unsigned: bool = False
    precision: int = 0
    scale: int = 0

    @property
    def is_binary(self) -> bool:
        """Whether values are bytes, not text."""
        return _SAME.get(self.name) == BINARY


def is_followed(base: Base) -> bool:
    """Whether values of a type are read from the log."""
    return base.name in LOG_TYPES


def spark_type(base: Base) -> Type:
    """The Spark type for a type: holds all its values, but for dates that are none, and whole numbers from 2^63 on, as
    keys by decimals would be looked up in Spark."""
    if base.name in _WHOLE:
        return _WHOLE[base.name][base.is_unsigned]
    if base.name == "bit":
        return BOOLEAN if base.precision == 1 else LONG
    if base.name == "decimal":
        return Decimal(base.precision, base.scale) if base.precision <= 38 else STRING
    return _SAME.get(base.name, STRING)


def may_be(base: Base, declared: Type) -> bool:
    """Whether a column of the type can be declared so."""
    if base.is_binary:
        return declared == BINARY
    if isinstance(declared, Decimal):
        return base.name in (*_NUMBERS, "decimal")
    return declared == STRING or declared in _ALLOWED.get(base.name, ())


def converted(texts: pa.ChunkedArray, name: str, base: str, dtype: Type) -> pa.ChunkedArray:
    """Values of a Spark type from text. Raises DatabaseError, naming the column and a value that has no form."""
    if dtype == BOOLEAN:
        require(texts, "^[01]$", name, base, dtype)
        return pc.equal(texts, "1")
    if dtype == STRING and base in ("float", "double"):
        return texts.cast(pa.float64()).cast(pa.string())  # the log and the server write numbers in different ways
    if base == "decimal" and dtype in INTEGERS:
        texts = pc.replace_substring_regex(texts, r"\.0*$", "")
    return from_text(texts, name, base, dtype)
