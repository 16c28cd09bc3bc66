"""Values of any type are compared, maps among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.core.types import VARIANT
from dbt_incremental_dd.logical.equality import same
from dbt_incremental_dd.trace.spark_reader import schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUES = {
    "maps": ["map('a', 1, 'b', NULL)", "map('b', NULL, 'a', 1)", "map()", "map('a', 1)", "NULL"],
    "maps of maps": ["map('a', map('x', 1))", "map('a', map('x', 2))", "map('a', NULL)", "NULL"],
    "structs of maps": ["named_struct('m', map('a', 1))", "named_struct('m', NULL)", "NULL"],
    "variants": ["parse_json('{\"a\": 1}')", "parse_json('1')", "parse_json('null')", "NULL"],
    "arrays": ["array(1, NULL)", "array(1)", "array()", "NULL"],
    "texts": ["'a'", "''", "NULL"],
}
EQUAL = {("maps", 0, 1)}


@pytest.mark.parametrize("kind", VALUES)
def test_which_are_the_same(spark: SparkSession, kind: str) -> None:
    values = VALUES[kind]
    typed = [f"SELECT {n} AS n, {value} AS v" for n, value in enumerate(values)]
    frame = spark.sql(" UNION ALL ".join(typed))
    type = VARIANT if kind == "variants" else schema_of(frame.schema).columns[1].type
    frame.createOrReplaceTempView("one")
    pairs = spark.sql(f"SELECT a.n, b.n, {same('a.v', 'b.v', type)} FROM one a CROSS JOIN one b").collect()
    for one, other, found in pairs:
        assert found is (one == other or (kind, min(one, other), max(one, other)) in EQUAL), (
            values[one],
            values[other],
        )
