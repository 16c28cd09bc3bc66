"""A group's texts behind each other."""

from __future__ import annotations

import pyarrow as pa

from dbt_incremental_dd.core.types import STRING
from dbt_incremental_dd.local.aggregates.groups import Aggregate, Aggregates, Groups, lists, made
from dbt_incremental_dd.local.value import Constants, Value
from dbt_incremental_dd.local.vectors import constant_text, require


def _joined(groups: Groups, constants: Constants, value: Value, separator: Value | None = None) -> Value:
    require(value, STRING)
    between = "" if separator is None else constant_text(separator)
    found: list[str | None] = [None] * groups.count
    for number, texts in lists(groups, value):
        found[number] = between.join(texts)
    return made(groups, pa.array(found, pa.string()), STRING)


AGGREGATES: Aggregates = dict.fromkeys(("listagg", "string_agg"), Aggregate(_joined, 1, 2))
