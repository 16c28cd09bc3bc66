"""Functions that are evaluated on the driver, by name: one family a file. Each takes values, at least one of them a
column, and gives Spark's value and type for all that it does not leave to Spark."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_incremental_dd.local.functions import (
    array_parts,
    array_sets,
    arrays,
    conditional,
    conversions,
    dates,
    hashing,
    json_text,
    json_writer,
    moments,
    murmur,
    numbers,
    parsing,
    patterns,
    searching,
    splitting,
    text,
    xxhash,
)
from dbt_incremental_dd.local.functions.function import Functions
from dbt_incremental_dd.local.value import Constants, NotExact, Value

_FUNCTIONS: Functions = {
    **array_parts.FUNCTIONS,
    **array_sets.FUNCTIONS,
    **arrays.FUNCTIONS,
    **conditional.FUNCTIONS,
    **conversions.FUNCTIONS,
    **dates.FUNCTIONS,
    **hashing.FUNCTIONS,
    **json_text.FUNCTIONS,
    **json_writer.FUNCTIONS,
    **moments.FUNCTIONS,
    **murmur.FUNCTIONS,
    **numbers.FUNCTIONS,
    **parsing.FUNCTIONS,
    **patterns.FUNCTIONS,
    **searching.FUNCTIONS,
    **splitting.FUNCTIONS,
    **text.FUNCTIONS,
    **xxhash.FUNCTIONS,
}


NAMES = frozenset(_FUNCTIONS)
"""In lower case."""


def call(name: str, arguments: Sequence[Value], constants: Constants) -> Value:
    """The function's value. Raises NotExact where it is not one of those here, or not for these arguments."""
    function = _FUNCTIONS.get(name)
    if function is None or not function.least <= len(arguments) <= function.most:
        raise NotExact
    return function.apply(*([constants.time_zone] if function.in_zone else []), *arguments)
