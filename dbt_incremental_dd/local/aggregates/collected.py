"""A group's values as an array."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dbt_incremental_dd.core.types import Array
from dbt_incremental_dd.local.aggregates.groups import Aggregate, Aggregates, Groups
from dbt_incremental_dd.local.lists import Lists
from dbt_incremental_dd.local.value import Constants, NotExact, Value
from dbt_incremental_dd.local.vectors import column, flat
from dbt_incremental_dd.trace.arrow import arrow_type


def _collected(groups: Groups, constants: Constants, value: Value) -> Value:
    """In the order of the rows; none of a group without rows."""
    if isinstance(value.data, pa.Scalar) or arrow_type(value.type) is None:
        raise NotExact("an array of a constant, or of a special type")
    elements = flat(value.data).take(pa.array(groups.by_group))
    lists = Lists(groups.sizes, np.zeros(groups.count, bool), (elements,))
    return column(lists.arrays(), Array(value.type))


AGGREGATES: Aggregates = dict.fromkeys(("array_agg", "collect_list"), Aggregate(_collected))
