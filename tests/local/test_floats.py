"""Floats are ranked as Spark orders them."""

from __future__ import annotations

import math
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt_incremental_dd.local.floats import canonical, of_ranks, ranks

OTHER_NAN = float(np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0])
VALUES = [None, 0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, OTHER_NAN, 1e-320]


def _order(one: float, other: float) -> int:
    """Spark's: NaN is the greatest."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) - math.isnan(other)
    return (one > other) - (one < other)


@pytest.mark.parametrize("type", [pa.float64(), pa.float32()])
@given(values=st.lists(st.none() | st.floats() | st.floats(width=32) | st.sampled_from(VALUES)))
def test_ranks_are_in_order(type: pa.DataType, values: list[float | None]) -> None:
    column = pa.chunked_array([pa.array(np.array([v or 0.0 for v in values], np.float64)).cast(type, safe=False)])
    column = pc.if_else(pa.array([v is not None for v in values], pa.bool_()), column, pa.scalar(None, type))
    ranked = ranks(column).to_pylist()
    assert [rank is None for rank in ranked] == [value is None for value in values]
    known = [value for value in column.to_pylist() if value is not None]
    by_rank = [value for _, value in sorted(zip([r for r in ranked if r is not None], known, strict=True), key=_first)]
    assert all(_order(*pair) <= 0 for pair in pairwise(by_rank))
    assert len(set(filter(None.__ne__, ranked))) == len({str(v) for v in canonical(column).to_pylist()} - {"None"})
    assert str(of_ranks(ranks(column), type).to_pylist()) == str(canonical(column).to_pylist())
    assert sorted(known, key=cmp_to_key(_order))[:1] == by_rank[:1] or any(map(math.isnan, known))


def _first(pair: tuple[Any, float]) -> Any:
    return pair[0]


def test_others_stay_as_they_are() -> None:
    texts = pa.array(["b", None])
    assert canonical(texts) is texts
    assert ranks(texts) is texts
