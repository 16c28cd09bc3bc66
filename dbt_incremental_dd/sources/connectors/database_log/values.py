"""Values from their text: lossless, or an error that names the column and a value that has no form."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, Type
from dbt_incremental_dd.sources.connectors.database_log.errors import DatabaseError
from dbt_incremental_dd.trace.arrow import arrow_type

_DATE = r"^\d{4}-\d\d-\d\d$"
_TIMESTAMP = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?$"


def from_text(texts: pa.ChunkedArray, name: str, base: str, dtype: Type) -> pa.ChunkedArray:
    """Values of a Spark type from text; a date or time is as in ISO 8601, with a space, and UTC. ``base``: the column's
    type in its database. Raises DatabaseError."""
    wanted = arrow_type(dtype)
    if dtype == STRING:
        return texts
    if dtype == DATE:
        require(texts, _DATE, name, base, dtype)
    elif dtype in (TIMESTAMP, TIMESTAMP_NTZ):
        require(texts, _TIMESTAMP, name, base, dtype)
    try:
        return _cast(texts, wanted)
    except pa.ArrowException:
        raise _unfit(texts, name, base, dtype, lambda one: _cast(one, wanted)) from None


def require(texts: pa.ChunkedArray, pattern: str, name: str, base: str, dtype: Type) -> None:
    """Raises DatabaseError, with the first one, where a text does not fit the pattern."""
    fits = pc.match_substring_regex(texts, pattern)
    if pc.all(pc.fill_null(fits, True)).as_py() is False:
        value = next(text for text in texts.to_pylist() if text is not None and not re.match(pattern, text))
        raise _no_form(name, base, value, dtype)


def _cast(texts: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_timestamp(wanted):
        return texts.cast(pa.timestamp("us")).cast(wanted)
    if pa.types.is_floating(wanted):
        # Both zeros are equal, there and in Spark, and only one of them can be found again by its value.
        return pc.add(texts.cast(wanted), pa.scalar(0, wanted))
    return texts.cast(wanted)


def _unfit(
    texts: pa.ChunkedArray, name: str, base: str, dtype: Type, cast: Callable[[pa.ChunkedArray], object]
) -> DatabaseError:
    """The error for the first value that cannot be cast."""
    for text in pc.unique(texts).to_pylist():
        try:
            cast(pa.chunked_array([pa.array([text], pa.string())]))
        except pa.ArrowException:
            return _no_form(name, base, str(text), dtype)
    return _no_form(name, base, "a value", dtype)


def _no_form(name: str, base: str, value: str, dtype: Type) -> DatabaseError:
    kind = str(dtype).replace("integer", "int")
    return DatabaseError(
        f"column {name} ({base}) holds {value[:40]!r}, which Spark's {kind} cannot hold",
        f"Declare the column with data_type string, and take the source in anew; or correct the rows with that {name}.",
    )
