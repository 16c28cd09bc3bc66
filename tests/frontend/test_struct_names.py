"""Structs have the names of fields that Spark gives them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dbt_incremental_dd.api import Collection
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STRUCTS = [
    *("struct(v)", "struct((v))", "struct(((v)) AS w)", "struct(-v)", "struct(t.v)", "struct(V)", "struct(v + 1, (v))"),
    *("struct(st.f)", "struct((st).f)", "struct(st['f'])", "struct(m['f'])", "struct(m['f'] AS g)", "struct(arr[0])"),
    *("struct(st['f'], (v), 1)", "named_struct('a', struct((v)), 'b', struct(m['x y']))"),
]


def test_fields_are_named_as_spark_s(spark: SparkSession, tmp_path: Path) -> None:
    world = World(spark, tmp_path, {"t": Table("id INT, st STRUCT<f: INT>, m MAP<STRING, INT>, v INT, arr ARRAY<INT>")})
    for number, sql in enumerate(STRUCTS):
        world.model(f"m{number}", f"SELECT id, {sql} AS s FROM {{t}} AS t")
    world.insert("t", [(1, (2,), {"f": 3}, 4, [5]), (2, None, None, None, None)])
    world.step(fallback="error")
    world.check()
    for number, sql in enumerate(STRUCTS):
        stored = Collection(world.storage, f"{world.schema}.m{number}").as_of().schema.field("s").type
        assert str(stored).replace("int32", "int").replace(": ", ":") == _named(world, number), sql


def _named(world: World, number: int) -> str:
    named: str = world.batch(f"m{number}").schema["s"].dataType.simpleString()
    return named.replace(",", ", ")
