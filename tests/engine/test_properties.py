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

from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]
DDL = "k INT, v BIGINT, d DECIMAL(10,2), s STRING"

rows = st.tuples(
    st.sampled_from([None, 0, 1, 2, 3]),
    st.sampled_from([None, -1, 0, 7, 2**40]),
    st.sampled_from([None, Decimal("0.00"), Decimal("1.05"), Decimal("-99999999.99")]),
    st.sampled_from([None, "", "a", "b", "ü"]),
)

conditions = st.sampled_from(
    ["k > 0", "v IS NOT NULL", "s IN ('a', '')", "coalesce(d, 0) >= 0", "k <=> NULL", "v % 2 = 0"]
)
aggregates = st.lists(
    st.sampled_from(
        [
            "count(*)",
            "count(v)",
            "sum(v)",
            "sum(d)",
            "avg(d)",
            "avg(k)",
            "min(s)",
            "max(v)",
            "max(d)",
            "count(DISTINCT s)",
            "sum(v) FILTER (WHERE k > 0)",
            "bool_or(v > 0)",
            "percentile(v, 0.5)",
        ]
    ),
    min_size=1,
    max_size=4,
    unique=True,
)


@st.composite
def sources(draw: st.DrawFn) -> str:
    """A relation with columns k, v, d, s."""
    condition = draw(conditions)
    return draw(
        st.sampled_from(
            [
                "{a}",
                f"(SELECT * FROM {{a}} WHERE {condition})",
                "(SELECT a.k, b.v, a.d, b.s FROM {a} a JOIN {b} b ON a.k = b.k)",
                "(SELECT a.k, b.v, a.d, b.s FROM {a} a LEFT JOIN {b} b ON a.k = b.k AND a.s = b.s)",
                "(SELECT * FROM {a} UNION ALL SELECT * FROM {b})",
                "(SELECT * FROM {a} UNION SELECT * FROM {b})",
                "(SELECT * FROM {a} EXCEPT SELECT * FROM {b})",
                "(SELECT DISTINCT k, v, d, s FROM {a})",
                f"(SELECT b.k, a.v, b.d, a.s FROM {{a}} a, {{b}} b, {{a}} c WHERE a.k = b.k AND c.s = b.s AND c.{condition})",
                "(SELECT k, max(v) AS v, sum(d) AS d, min(s) AS s FROM {a} GROUP BY k)",
            ]
        )
    )


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A query in one of the shapes that are maintained."""
    source = draw(sources())
    shape = draw(st.sampled_from(["rows", "group", "global", "having", "top", "first", "window", "join"]))
    called = [f"{call} AS c{i}" for i, call in enumerate(draw(aggregates))]
    if shape == "rows":
        return f"SELECT k, v + 1 AS w, d * 2 AS e, concat(s, '!') AS t FROM {source} WHERE {draw(conditions)}"
    if shape == "group":
        return f"SELECT k, s, {', '.join(called)} FROM {source} GROUP BY k, s"
    if shape == "global":
        return f"SELECT {', '.join(called)} FROM {source}"
    if shape == "having":
        return f"SELECT s, {', '.join(called)} FROM {source} GROUP BY s HAVING count(*) > 1"
    if shape == "top":
        return f"SELECT k, v, d, s FROM {source} ORDER BY v DESC, k, d, s LIMIT {draw(st.integers(0, 4))}"
    if shape == "first":
        numbered = "row_number() OVER (PARTITION BY k ORDER BY v DESC, d, s) AS n"
        return f"SELECT k, v, d, s FROM (SELECT *, {numbered} FROM {source}) WHERE n <= 2"
    if shape == "window":
        return f"SELECT k, v, sum(v) OVER (PARTITION BY s) AS t, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM {source}"
    return (
        f"SELECT x.k, x.n, b.s FROM (SELECT k, count(*) AS n FROM {source} GROUP BY k) x LEFT JOIN {{b}} b ON b.k = x.k"
    )


steps = st.lists(
    st.tuples(st.lists(rows, max_size=5), st.lists(rows, max_size=3), st.lists(st.integers(0, 100), max_size=4)),
    min_size=2,
    max_size=3,
)


@settings(
    max_examples=int(os.environ.get("DD_EXAMPLES", "15")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(query=queries(), first=st.lists(rows, max_size=8), changes=steps)
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
