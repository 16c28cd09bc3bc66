"""Generated queries over generated tables and changes, against the batch answer after every step.

``DD_EXAMPLES=200 pytest tests/engine/test_properties.py`` runs more of them.
"""

from __future__ import annotations

import os
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.grammar import DDL, Grammar
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]

rows = st.tuples(
    st.sampled_from([None, 0, 1, 2, 3]),
    st.sampled_from([None, -1, 0, 7, 2**40]),
    st.sampled_from([None, Decimal("0.00"), Decimal("1.05"), Decimal("-99999999.99")]),
    st.sampled_from([None, "", "a", "b", "ü"]),
)

queries = st.builds(lambda rng, depth: Grammar(rng).query(depth), st.randoms(use_true_random=False), st.integers(1, 3))
steps = st.lists(
    st.tuples(st.lists(rows, max_size=5), st.lists(rows, max_size=3), st.lists(st.integers(0, 100), max_size=4)),
    min_size=2,
    max_size=3,
)


@settings(
    max_examples=int(os.environ.get("DD_EXAMPLES", "10")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(query=queries, first=st.lists(rows, max_size=8), changes=steps)
def test_any_query_is_exact_after_any_change(
    spark: SparkSession, query: str, first: list[Row], changes: list[tuple[list[Row], list[Row], list[int]]]
) -> None:
    """The promise, as it stands."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(spark, Path(folder), {"a": Table(DDL, list(first)), "b": Table(DDL)})
        world.model("m", query)
        world.step()
        world.check()
        for into_a, into_b, gone in changes:
            world.insert("a", into_a)
            world.insert("b", into_b)
            present = world.tables["a"].rows
            world.delete("a", [present[i] for i in sorted({i % len(present) for i in gone})] if present else [])
            world.step()
            world.check()
