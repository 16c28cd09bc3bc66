"""Types as functions: ``int(x)`` is ``CAST(x AS INT)``."""

from __future__ import annotations

from collections.abc import Callable

from dbt_incremental_dd.core.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    Decimal,
    Type,
)
from dbt_incremental_dd.local.casts import cast
from dbt_incremental_dd.local.functions.function import Functions, zoned
from dbt_incremental_dd.local.value import Value

_TYPES = {
    "bigint": LONG,
    "boolean": BOOLEAN,
    "date": DATE,
    "decimal": Decimal(10, 0),
    "double": DOUBLE,
    "int": INTEGER,
    "smallint": SHORT,
    "string": STRING,
    "timestamp": TIMESTAMP,
    "tinyint": BYTE,
}


def _to(type: Type) -> Callable[[str, Value], Value]:
    return lambda zone, value: cast(value, type, zone)


FUNCTIONS: Functions = {name: zoned(_to(type), 1) for name, type in _TYPES.items()}
