"""Functions of arrays that apply another function to each element: its body is evaluated once, over all elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import BOOLEAN, Type
from dbt_incremental_dd.core.types import Array as ArrayType
from dbt_incremental_dd.local.lists import Lists
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import Array, column, flat_column, repeated
from dbt_incremental_dd.trace.arrow import arrow_type


def _transformed(lists: Lists, type: Type, found: Value) -> Value:
    if arrow_type(found.type) is None:
        raise NotExact("an array of special types")
    elements = flat_column(found, len(lists.rows))
    return column(Lists(lists.lengths, lists.nulls, (elements,)).arrays(), ArrayType(found.type))


def _filtered(lists: Lists, type: Type, found: Value) -> Value:
    true, _ = _truths(lists, found)
    return column(lists.only(true).arrays(), ArrayType(type))


def _exists(lists: Lists, type: Type, found: Value) -> Value:
    """NULL, not false, where it is unknown of an element and true of none."""
    true, unknown = _truths(lists, found)
    holds = lists.any(true)
    return column(pa.array(holds, mask=lists.nulls | (~holds & lists.any(unknown))), BOOLEAN)


def _for_all(lists: Lists, type: Type, found: Value) -> Value:
    true, unknown = _truths(lists, found)
    fails = lists.any(~true & ~unknown)
    return column(pa.array(~fails, mask=lists.nulls | (~fails & lists.any(unknown))), BOOLEAN)


def _truths(lists: Lists, found: Value) -> tuple[Array, Array]:
    """Of which elements it is true, and of which NULL."""
    if found.type != BOOLEAN:
        raise NotExact
    values = repeated(found, len(lists.rows))
    true = np.asarray(pc.fill_null(values, False).to_numpy()).astype(bool)
    return true, np.asarray(pc.is_null(values).to_numpy()).astype(bool)


@dataclass(frozen=True)
class HigherOrder:
    """``apply`` makes the value of the elements, their type, and what the body is of each. ``variables``: how many the
    body may have; the second one is an element's place, from 0 on."""

    apply: Callable[[Lists, Type, Value], Value]
    variables: int = 1


FUNCTIONS: Mapping[str, HigherOrder] = {
    "exists": HigherOrder(_exists),
    "filter": HigherOrder(_filtered, 2),
    "forall": HigherOrder(_for_all),
    "transform": HigherOrder(_transformed, 2),
}
