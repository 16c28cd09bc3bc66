"""A group's values as an array."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dbt_incremental_dd.core.types import DATE, INTEGERS, STRING, Array, Type
from dbt_incremental_dd.local.aggregates.groups import Aggregate, Aggregates, Groups, in_any_order
from dbt_incremental_dd.local.functions.hash_chain import SEED
from dbt_incremental_dd.local.functions.murmur import of_bytes
from dbt_incremental_dd.local.lists import Lists
from dbt_incremental_dd.local.nested import numbers
from dbt_incremental_dd.local.value import Constants, NotExact, Value
from dbt_incremental_dd.local.vectors import column, firsts_of_equal, flat
from dbt_incremental_dd.trace.arrow import arrow_type

_BUCKETS = 16
"""Of a Scala ``HashSet`` of few values, however it was made."""
_MOST_IN_SET = 10
"""Of which each such set has so many buckets: with one more it may have grown."""


def _collected(groups: Groups, constants: Constants, value: Value) -> Value:
    """In the order of the rows; none of a group without rows."""
    if isinstance(value.data, pa.Scalar) or arrow_type(value.type) is None:
        raise NotExact("an array of a constant, or of a special type")
    return column(_lists(groups, value).arrays(), Array(value.type))


def _lists(groups: Groups, value: Value) -> Lists:
    elements = flat(value.data).take(pa.array(groups.by_group))
    return Lists(groups.sizes, np.zeros(groups.count, bool), (elements,))


def _set(groups: Groups, constants: Constants, value: Value) -> Value:
    """The different ones, in the order of the hash table in which Spark collects them."""
    if isinstance(value.data, pa.Scalar) or value.type not in (STRING, DATE, *INTEGERS):
        raise NotExact(f"a set of {value.type}")
    lists = _lists(groups, value)
    lists = lists.only(firsts_of_equal(lists.rows, numbers(lists.entries[0])[0].to_numpy()))
    if np.any(lists.lengths > _MOST_IN_SET):
        raise NotExact("a set of many values")
    hashes = np.array([_improved(_hash(item, value.type)) for item in _plain(lists.entries[0])], np.int64)
    order = np.lexsort((hashes, hashes % _BUCKETS, lists.rows))
    return column(lists.taken(order).arrays(), Array(value.type))


def _plain(elements: pa.Array) -> list[str | int]:
    found: list[str | int] = (elements.cast(pa.int32()) if pa.types.is_date(elements.type) else elements).to_pylist()
    return found


def _hash(item: str | int, type: Type) -> int:
    """Scala's ``##`` of what Spark keeps of a value, as a signed number of 32 bits."""
    if isinstance(item, str):
        return of_bytes(item.encode(), SEED)
    if -(1 << 31) <= item < 1 << 31:
        return item
    folded = (item ^ (item % (1 << 64)) >> 32) & 0xFFFF_FFFF
    return folded - (1 << 32) if folded >> 31 else folded


def _improved(hash: int) -> int:
    """As Scala's ``HashSet`` spreads hashes, whose nodes are in their order."""
    found = (hash ^ (hash & 0xFFFF_FFFF) >> 16) & 0xFFFF_FFFF
    return found - (1 << 32) if found >> 31 else found


AGGREGATES: Aggregates = {
    **dict.fromkeys(("array_agg", "collect_list"), Aggregate(_collected)),
    "collect_set": Aggregate(_set, is_ordered=in_any_order),
}
