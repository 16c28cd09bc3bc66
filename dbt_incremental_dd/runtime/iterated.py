"""A recursive query that Spark does not answer, by naive iteration: each binding's text run by Spark, again and again.

It knows nothing of plans and of differences: it is what incremental answers are compared with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.parsed import ParsedQuery
from dbt_incremental_dd.frontend.unfolded import Binding, unfolded
from dbt_incremental_dd.logical.now import bind_now
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.render.types import PlanTypes
from dbt_incremental_dd.trace.spark_reader import consolidate, no_rows, struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def iterated(
    spark: SparkSession,
    written: ParsedQuery,
    inputs: Mapping[str, Input],
    names: Mapping[str, str],
    t: Time,
    views: list[str],
) -> DataFrame:
    """The answer as of ``t``; ``names`` are the views of the inputs. Views that are made are noted in ``views``.

    It goes on for as long as anything changes.
    """
    types = PlanTypes(LazySession.of(spark), {given.collection: given.schema for given in inputs.values()})
    query = unfolded(written, inputs, types.of_sql)
    names = dict(names)
    for loop in query.loops:
        held = {step.key: no_rows(spark, struct(step.schema)) for step in loop}
        names |= {step.key: f"dd_verify_{uuid4().hex}" for step in loop}
        views += [names[step.key] for step in loop]
        for key, frame in held.items():
            frame.createOrReplaceTempView(names[key])
        while _iterate(spark, loop, held, names, t):
            pass
    return spark.sql(bind_now(query.text, t).format(*(names[key] for key in query.keys)))


def _iterate(
    spark: SparkSession, loop: tuple[Binding, ...], held: dict[str, DataFrame], names: Mapping[str, str], t: Time
) -> bool:
    """One iteration; whether it has changed anything."""
    changed = False
    for step in loop:
        found = spark.sql(bind_now(step.text, t).format(*(names[key] for key in step.keys)))
        columns = struct(step.schema)
        cast = (F.col(f"dd_{i}").cast(c.dataType).alias(c.name) for i, c in enumerate(columns))
        found = found.toDF(*(f"dd_{i}" for i in range(len(columns)))).select(*cast).localCheckpoint()
        changed = changed or _differ(held[step.key], found)
        held[step.key] = found
        found.createOrReplaceTempView(names[step.key])
    return changed


def _differ(one: DataFrame, other: DataFrame) -> bool:
    """By their counts first, which need no shuffle; both have been computed."""
    if one.count() != other.count():
        return True
    both = one.withColumn(DIFF, F.lit(1).cast("bigint")).union(other.withColumn(DIFF, F.lit(-1).cast("bigint")))
    return bool(consolidate(both).limit(1).collect())
