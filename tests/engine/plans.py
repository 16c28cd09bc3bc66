"""Golden files of plans; after a wanted change write them anew with ``DD_UPDATE_PLANS=1``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dbt_incremental_dd.differential.explain import explain
from dbt_incremental_dd.differential.serial import dumps, loads
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compile import compile_model
from dbt_incremental_dd.trace.spark_reader import schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def assert_as_before(spark: SparkSession, query: Path, schema: str, tables: Mapping[str, str], folder: Path) -> None:
    """The query's plan over tables (DDL by name) of a schema is that of its golden file, and recomputes no input."""
    written = parsed(query.read_text())
    schemas = {f"{schema}.{table}": schema_of(spark.createDataFrame([], ddl).schema) for table, ddl in tables.items()}
    inputs = {relation.key: Input(relation.key, schemas[relation.key]) for relation in written.relations}
    plan = compile_model(LazySession.of(spark), query.stem, written, inputs).plan
    shown = explain(plan) + "\n"
    golden = folder / f"{query.stem}.txt"
    if os.environ.get("DD_UPDATE_PLANS"):
        folder.mkdir(exist_ok=True)
        golden.write_text(shown)
    assert shown == golden.read_text()
    assert not plan.fallbacks
    assert loads(dumps(plan)) == plan
    assert explain(loads(dumps(plan))) + "\n" == shown
