"""Verification: a model's stored contents against Spark's own batch answer of its SQL, at the same time.

The batch answer knows nothing of the plan: it is the SQL text over the inputs' contents.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.manifest import ModelManifest, kind_of
from dbt_incremental_dd.core.schema import DIFF, Schema
from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.clock import with_run_time
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.frontend.recursion import is_recursive
from dbt_incremental_dd.frontend.template import template
from dbt_incremental_dd.logical.now import bind_now
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.comparison import Verification, compared
from dbt_incremental_dd.runtime.iterated import iterated
from dbt_incremental_dd.runtime.kept_history import stored_history
from dbt_incremental_dd.runtime.recursion_limits import unlimited
from dbt_incremental_dd.runtime.stored_sql import require_safe
from dbt_incremental_dd.runtime.verified_history import verified_history
from dbt_incremental_dd.trace.columns import require
from dbt_incremental_dd.trace.files import between
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.position import Position, position
from dbt_incremental_dd.trace.spark_multiset import multiset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def verify(spark: SparkSession, storage: Storage, models: list[str] | None = None) -> list[Verification]:
    """Verifies the named models (``schema.identifier``), or all, each at its own latest time."""
    names = models or [place.name for place in storage.collections() if _is_model(storage, place.name)]
    return [verify_model(spark, storage, name) for name in names]


def _is_model(storage: Storage, name: str) -> bool:
    place = storage.collection(name)
    log = place.log()
    return log is not None and isinstance(place.read_manifest(log.manifest), ModelManifest)


def verify_model(spark: SparkSession, storage: Storage, name: str) -> Verification:
    """Recomputes one model from its inputs' contents and compares; several threads may. Raises StateError where that is
    not a model."""
    log, schema = require(storage, name)
    manifest = storage.collection(name).read_manifest(log.manifest)
    if not isinstance(manifest, ModelManifest):
        raise StateError(f"{name} is a {kind_of(manifest)}, not a model", "Name a model.")
    history = stored_history(name, manifest)
    t = log.frontiers.last
    views: list[str] = []
    try:
        with unlimited(spark) if is_recursive(parsed(manifest.sql).tree) else nullcontext():
            started = time.monotonic()
            answer = batch_answer(spark, storage.collection(name), manifest, position(log, manifest), views)
            query = schema if history is None else history.query_columns(schema)
            kept = answer.toDF(*query.names).localCheckpoint()
            seconds = time.monotonic() - started
        stored = _stored(spark, log, schema, t)
        if history is not None:
            return verified_history(history, query, name, t, kept, stored, seconds)
        return compared(name, t, kept, stored, seconds)
    finally:
        for view in views:
            spark.catalog.dropTempView(view)


def batch_answer(
    spark: SparkSession, place: CollectionStore, manifest: ModelManifest, read: Position, views: list[str]
) -> DataFrame:
    """The model's SQL over its inputs' contents as it has read them. Temporary views are noted in ``views``. Raises
    StateError where the SQL is not to be trusted."""
    given = {key: require(place.storage, name) for key, name in manifest.inputs.items()}
    inputs = {key: Input(log.name, schema) for key, (log, schema) in given.items()}
    written = parsed(manifest.sql)
    require_safe(LazySession.of(spark), place, written, inputs, manifest.history)
    query = with_run_time(written, inputs)
    read_often = is_recursive(query.tree)
    names = {}
    for key, (log, schema) in given.items():
        log.frontiers.require(read.inputs[log.name], log.name)
        names[key] = f"dd_verify_{uuid4().hex}"
        rows = contents(spark, log, schema, read.inputs[log.name])
        (rows.localCheckpoint() if read_often else rows).createOrReplaceTempView(names[key])
        views.append(names[key])
    text, keys = template(query, inputs)
    try:
        answer = spark.sql(bind_now(text, read.as_of).format(*(names[key] for key in keys)))
        answer.schema  # noqa: B018 - a Connect server analyses it only now
        return answer
    except AnalysisException:
        if not is_recursive(query.tree):
            raise
    return iterated(spark, query, inputs, names=names, t=read.as_of, views=views)


def contents(spark: SparkSession, log: Log, schema: Schema, t: Time) -> DataFrame:
    """A collection's rows as of ``t``, each as often as it counts."""
    copies = F.explode(F.expr(f"array_repeat(0, CAST({DIFF} AS INT))"))
    return _stored(spark, log, schema, t).withColumn("dd_copy", copies).drop("dd_copy", DIFF)


def _stored(spark: SparkSession, log: Log, schema: Schema, t: Time) -> DataFrame:
    """A collection's rows as of ``t``, with their multiplicities."""
    return multiset(spark, log.uri, between(log.files, BEGINNING, t), schema, t)
