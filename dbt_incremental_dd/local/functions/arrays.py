"""Functions of arrays, maps and structs, and those that make them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import (
    BOOLEAN,
    FLOATS,
    INTEGER,
    INTEGERS,
    NESTED,
    STRING,
    VOID,
    Decimal,
    Field,
    Map,
    Struct,
    Type,
)
from dbt_incremental_dd.core.types import Array as ArrayType
from dbt_incremental_dd.local.casts import cast
from dbt_incremental_dd.local.coercion import common_type, is_comparable, widened
from dbt_incremental_dd.local.comparing import comparable, equal
from dbt_incremental_dd.local.floats import canonical
from dbt_incremental_dd.local.functions.function import MANY, Function, Functions, fixed, zoned
from dbt_incremental_dd.local.lists import Lists
from dbt_incremental_dd.local.nested import has_order, numbers
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import (
    Array,
    column,
    constant_int,
    constant_text,
    firsts_of_equal,
    flat,
    flat_column,
    repeated,
    require,
    rows_of,
)
from dbt_incremental_dd.trace.arrow import arrow_type


def element_type(value: Value) -> Type:
    """That of an array's elements. Raises NotExact for what is no column of arrays of which Arrow has the type."""
    if not isinstance(value.type, ArrayType) or isinstance(value.data, pa.Scalar) or arrow_type(value.type) is None:
        raise NotExact
    return value.type.element


def element(value: Value, position: Value, zone: str) -> Value:
    """``value[position]``: an array's element, counted from 0, or a map's value; NULL where there is none."""
    if isinstance(value.type, Map):
        return _value_of(zone, value, position)
    type = element_type(value)
    return column(Lists.of(value.data).at(_positions(position, len(value.data))), type)


def _positions(position: Value, rows: int) -> Array:
    """As numbers; -1 for NULL."""
    require(position, *INTEGERS)
    found = pc.fill_null(pc.cast(repeated(position, rows), pa.int64()), -1)
    return np.asarray(found.to_numpy())


def _get(zone: str, value: Value, position: Value) -> Value:
    element_type(value)
    return element(value, position, zone)


def _element_at(zone: str, value: Value, position: Value) -> Value:
    """Counted from 1, or from the end."""
    if isinstance(value.type, Map):
        return _value_of(zone, value, position)
    type, lists = element_type(value), Lists.of(value.data)
    number = constant_int(position)
    if not number:
        raise NotExact("an element at 0")
    at = np.full(len(lists.lengths), number - 1) if number > 0 else lists.lengths + number
    return column(lists.at(at), type)


def _value_of(zone: str, value: Value, key: Value) -> Value:
    lists, equals = _equal_keys(zone, value, key)
    assert isinstance(value.type, Map)
    return column(lists.at(lists.first(equals), 1), value.type.value)


def _contains_key(zone: str, value: Value, key: Value) -> Value:
    lists, equals = _equal_keys(zone, value, key)
    return column(pa.array(lists.any(equals), mask=lists.nulls), BOOLEAN)


def _equal_keys(zone: str, value: Value, key: Value) -> tuple[Lists, Array]:
    """A map's entries, and which of them have a key."""
    if not isinstance(value.type, Map) or isinstance(value.data, pa.Scalar) or arrow_type(value.type) is None:
        raise NotExact
    lists = Lists.of(value.data)
    equals, _ = equal_elements(zone, lists, value.type.key, key)
    return lists, equals


def equal_elements(zone: str, lists: Lists, type: Type, value: Value) -> tuple[Array, Array]:
    """Which entries are equal to their row's value, or to a constant; and in which rows that is NULL."""
    _require_alike(type, value.type)
    if not isinstance(value.data, pa.Scalar):
        nulls = pc.is_null(value.data).to_numpy()
        value = Value(value.data.take(pa.array(lists.rows)), value.type)
    else:
        nulls = np.full(len(lists.lengths), not value.data.is_valid)
    one, other = comparable(Value(pa.chunked_array([lists.entries[0]]), type), value, zone)
    found = pc.fill_null(equal(one, other), False)
    return np.asarray(found.to_numpy()).astype(bool), nulls


def _require_alike(type: Type, other: Type) -> None:
    """Raises NotExact unless Spark compares elements of ``type`` with such values, and not in another type than here:
    it refuses some pairs, and converts others."""
    is_wider = type in INTEGERS and other in INTEGERS[: INTEGERS.index(type) + 1]
    are_decimals = isinstance(type, Decimal) and isinstance(other, Decimal)
    if isinstance(type, NESTED) or not (type == other or is_wider or are_decimals):
        raise NotExact(f"a {other} among {type}")


def _contains(zone: str, value: Value, wanted: Value) -> Value:
    """NULL, not false, where an element is NULL and none is equal."""
    type, lists = element_type(value), Lists.of(value.data)
    equals, nulls = equal_elements(zone, lists, type, wanted)
    found = lists.any(equals)
    unknown = ~found & lists.any(~lists.known)
    return column(pa.array(found, mask=lists.nulls | nulls | unknown), BOOLEAN)


def _size(value: Value) -> Value:
    """Of NULL -1, as Spark has it by default."""
    lists = _entries(value)
    return column(pa.array(np.where(lists.nulls, -1, lists.lengths), pa.int32()), INTEGER)


def _array_size(value: Value) -> Value:
    element_type(value)
    lists = Lists.of(value.data)
    return column(pa.array(lists.lengths, pa.int32(), mask=lists.nulls), INTEGER)


def _entries(value: Value) -> Lists:
    """Of arrays or maps."""
    if not isinstance(value.type, ArrayType | Map) or isinstance(value.data, pa.Scalar):
        raise NotExact
    if arrow_type(value.type) is None:
        raise NotExact
    return Lists.of(value.data)


def _keys(value: Value) -> Value:
    return _half(value, 0)


def _values(value: Value) -> Value:
    return _half(value, 1)


def _half(value: Value, entry: int) -> Value:
    """Keys or values of a map, as an array."""
    lists = _entries(value)
    if not isinstance(value.type, Map):
        raise NotExact
    type = value.type.value if entry else value.type.key
    return column(Lists(lists.lengths, lists.nulls, (lists.entries[entry],)).arrays(), ArrayType(type))


def _map_entries(value: Value) -> Value:
    """As structs of a key and a value."""
    lists = _entries(value)
    if not isinstance(value.type, Map):
        raise NotExact
    type = Struct((Field("key", value.type.key), Field("value", value.type.value)))
    fields = [pa.field(name, part.type) for name, part in zip(("key", "value"), lists.entries, strict=True)]
    structs = pa.StructArray.from_arrays(list(lists.entries), fields=fields)
    return column(Lists(lists.lengths, lists.nulls, (structs,)).arrays(), ArrayType(type))


def _joined(zone: str, value: Value, separator: Value, replacement: Value | None = None) -> Value:
    """The elements' texts; NULLs are left out, or replaced."""
    type, lists = element_type(value), Lists.of(value.data)
    between = constant_text(separator)
    if isinstance(type, NESTED):
        raise NotExact
    texts = flat(cast(Value(pa.chunked_array([lists.entries[0]]), type), STRING, zone).data)
    if replacement is not None:
        texts = pc.fill_null(texts, constant_text(replacement))
    found = Lists(lists.lengths, lists.nulls, (texts,))
    return column(pc.binary_join(found.only(found.known).arrays(), between), STRING)


def _order(type: Type, elements: pa.Array) -> Array:
    """Numbers in the elements' order, -1 for NULL."""
    if not is_comparable(type) and not has_order(type):
        raise NotExact
    return np.asarray(pc.fill_null(numbers(elements)[0], -1).to_numpy(zero_copy_only=False))


def _sorted(value: Value, ascending: Value | None = None) -> Value:
    """NULLs are the least."""
    is_ascending = True if ascending is None else _flag(ascending)
    type, lists = element_type(value), Lists.of(value.data)
    order = _order(type, lists.entries[0])
    return column(lists.taken(np.lexsort((order if is_ascending else -order, lists.rows))).arrays(), value.type)


def _sorted_nulls_last(value: Value) -> Value:
    type, lists = element_type(value), Lists.of(value.data)
    order = _order(type, lists.entries[0])
    order = np.where(order < 0, len(order), order)
    return column(lists.taken(np.lexsort((order, lists.rows))).arrays(), value.type)


def _flag(value: Value) -> bool:
    found = value.data.as_py() if isinstance(value.data, pa.Scalar) else None
    if not isinstance(found, bool):
        raise NotExact
    return found


def _distinct(value: Value) -> Value:
    """The first of equal elements; of zeros 0.0."""
    type, lists = element_type(value), Lists.of(value.data)
    order = _order(type, lists.entries[0])
    found = Lists(lists.lengths, lists.nulls, (canonical(lists.entries[0]),))
    return column(found.only(firsts_of_equal(lists.rows, order)).arrays(), value.type)


def _extreme(*, is_greatest: bool) -> Any:
    """NULLs do not count."""

    def extreme(value: Value) -> Value:
        type, lists = element_type(value), Lists.of(value.data)
        lists = lists.only(lists.known)
        order = _order(type, lists.entries[0])
        found = lists.taken(np.lexsort((-order if is_greatest else order, lists.rows)))
        return column(found.at(np.zeros(len(lists.lengths), np.int64)), type)

    return extreme


def _map(*arguments: Value) -> Value:
    """Of keys and values by turns. A key that is NULL, or comes twice, is an error."""
    keys, values = arguments[::2], arguments[1::2]
    if len(keys) != len(values):
        raise NotExact
    rows = rows_of(*arguments)
    made = _array(*(Value(repeated(key, rows), key.type) for key in keys))
    items = Lists.of(_array(*(Value(repeated(value, rows), value.type) for value in values)).data)
    lists = Lists.of(made.data)
    type = Map(element_type(made), common_type([value.type for value in values]))
    return _map_of(Lists(lists.lengths, lists.nulls, (lists.entries[0], items.entries[0])), type)


def _map_from_entries(value: Value) -> Value:
    """Of structs of a key and a value; NULL where one of them is NULL."""
    type, lists = element_type(value), Lists.of(value.data)
    if not isinstance(type, Struct) or len(type.fields) != 2:
        raise NotExact
    nulls = lists.nulls | lists.any(~lists.known)
    if nulls.any():
        kept = lists.only(~nulls[lists.rows])
        lists = Lists(kept.lengths, nulls, kept.entries)
    key, item = (field.type for field in type.fields)
    keys, items = lists.entries[0].flatten()
    return _map_of(Lists(lists.lengths, lists.nulls, (keys, items)), Map(key, item))


def _map_of(lists: Lists, type: Map) -> Value:
    """Raises NotExact where Spark has an error."""
    code = _order(type.key, lists.entries[0])
    if type.key in FLOATS or isinstance(type.key, NESTED) or np.any(code < 0):
        raise NotExact("keys of a map")
    if not firsts_of_equal(lists.rows, code).all():
        raise NotExact("a key that comes twice")
    ends = np.concatenate([[0], np.cumsum(lists.lengths)]).astype(np.int32)
    offsets = pa.array(ends, mask=np.append(lists.nulls, False)) if lists.nulls.any() else pa.array(ends)
    return column(pa.MapArray.from_arrays(offsets, *lists.entries, type=arrow_type(type)), type)


def _array(*values: Value) -> Value:
    """Of the arguments."""
    type = common_type([value.type for value in values])
    if type == VOID or arrow_type(type) is None:
        raise NotExact
    rows = rows_of(*values)
    columns = [flat_column(widened(value, type), rows) for value in values]
    places = np.arange(rows * len(values)).reshape(len(values), rows).T.ravel()
    elements = pa.concat_arrays(columns).take(pa.array(places))
    lists = Lists(np.full(rows, len(values)), np.zeros(rows, bool), (elements,))
    return column(lists.arrays(), ArrayType(type))


def _struct(*arguments: Value) -> Value:
    """Of names, which are constants, and values."""
    if len(arguments) % 2:
        raise NotExact
    names, values = [constant_text(name) for name in arguments[::2]], arguments[1::2]
    type = Struct(tuple(Field(name, value.type) for name, value in zip(names, values, strict=True)))
    if arrow_type(type) is None:
        raise NotExact("a struct of special types")
    rows = rows_of(*values)
    parts = [flat_column(value, rows) for value in values]
    fields = [pa.field(name, part.type) for name, part in zip(names, parts, strict=True)]
    return column(pa.StructArray.from_arrays(parts, fields=fields), type)


FUNCTIONS: Functions = {
    "array": Function(_array, 1, MANY),
    "array_contains": zoned(_contains, 2),
    "array_distinct": fixed(_distinct, 1),
    "array_join": zoned(_joined, 2, 3),
    "array_max": fixed(_extreme(is_greatest=True), 1),
    "array_min": fixed(_extreme(is_greatest=False), 1),
    "array_size": fixed(_array_size, 1),
    "array_sort": fixed(_sorted_nulls_last, 1),
    "cardinality": fixed(_size, 1),
    "element_at": zoned(_element_at, 2),
    "get": zoned(_get, 2),
    "map": Function(_map, 2, MANY),
    "map_contains_key": zoned(_contains_key, 2),
    "map_entries": fixed(_map_entries, 1),
    "map_from_entries": fixed(_map_from_entries, 1),
    "map_keys": fixed(_keys, 1),
    "map_values": fixed(_values, 1),
    "named_struct": Function(_struct, 2, MANY),
    "size": fixed(_size, 1),
    "sort_array": Function(_sorted, 1, 2),
    "try_element_at": zoned(_element_at, 2),
}
