"""Credentials are given to storage, and shown nowhere."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.explain import explain_model
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.trace.layout import Storage
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECRET = "correct-horse-battery-staple"


def test_credentials_are_in_no_file_log_or_plan(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(spark, tmp_path, {"t": Table("k INT, v INT")})
    world.storage = Storage(str(tmp_path), {"AWS_SECRET_ACCESS_KEY": SECRET})
    world.model("sums", "SELECT k, sum(v) AS v FROM {t} GROUP BY k")
    told = []
    with caplog.at_level(logging.DEBUG):
        for step in range(2):
            world.insert("t", [(step, 1)])
            world.step()
        run = Run(LazySession.of(spark), world.storage, "run", None, told.append)
        told += [repr(run.storage), repr(run.storage.collection("s.t")), str(vars(run))]
        told.append(explain_model(LazySession.of(spark), world.storage, f"{world.schema}.sums"))
        spec = parse_source("s.t", "s.t", {"path": "x", "format": "csv", "options": {"password": SECRET}}, {}, "/")
        told.append(repr(spec))
    told += [record.getMessage() for record in caplog.records]
    assert not [text for text in told if SECRET in text]
    stored = [path for path in tmp_path.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert not stored
