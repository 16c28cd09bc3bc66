"""A lake table as a source, with a model over it: taken in step by step, and compared with Spark's own answers."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.verify import contents
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.sources.connectors.lake import data_files
from dbt_incremental_dd.sources.intake import Intake
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.spark_reader import consolidate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBERS = itertools.count()


class Reading:
    """``table``: how Spark's own connector calls it. ``read``: how many rows of data files each step has read."""

    def __init__(self, spark: SparkSession, folder: Path, table: str, model: str = "", **meta: Any) -> None:
        self.spark, self.table, self.model = spark, table, model
        self.storage = Storage(str(folder / "state"))
        self.spec = parse_source("lake.t", table, meta, {}, str(folder))
        self.relation = f"lake{next(_NUMBERS)}"
        self.notes: list[str] = []
        self.time = 100
        self.read = 0
        self.files: list[str] = []
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {self.relation}")

    def take(self) -> Intake:
        """One run."""
        self.time += 1
        run = Run(LazySession.of(self.spark), self.storage, f"run{self.time}", self.time, self.notes.append)
        with self._counting():
            taken = run.source(self.spec)
        if self.model:
            run.model(self._request())
        return taken

    def take_exactly(self) -> Intake:
        """One run, after which the source's contents and the model's are Spark's own answers."""
        taken = self.take()
        answer = self.spark.table(self.table)
        self._same(answer, contents(self.spark, taken.log, taken.schema, self.time).select(answer.columns))
        if self.model:
            answer = self.spark.sql(self.model.format(t=self.table))
            self._same(answer, self.spark.table(f"{self.relation}.m"))
        return taken

    def _same(self, answer: Any, found: Any) -> None:
        assert found.dtypes == answer.dtypes
        both = answer.selectExpr("*", "1L AS dd_diff").unionAll(found.selectExpr("*", "-1L AS dd_diff"))
        others = consolidate(both).limit(5).collect()
        assert not others, f"missing (+) and unexpected (-): {others}\n{self.notes}"

    def _request(self) -> ModelRequest:
        return ModelRequest(
            name=f"{self.relation}.m",
            relation=f"`{self.relation}`.`m`",
            sql=self.model.format(t="lake.t"),
            config=ModelConfig(fallback="error"),
            inputs={"lake.t": self.spec},
        )

    @contextmanager
    def _counting(self) -> Iterator[None]:
        counter = _Counter()
        logger = logging.getLogger(data_files.__name__)
        logger.addHandler(counter)
        logger.setLevel(logging.DEBUG)
        try:
            yield
        finally:
            logger.removeHandler(counter)
            self.read, self.files = counter.rows, counter.files


class _Counter(logging.Handler):
    """Counts what the module that reads data files tells."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = 0
        self.files: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.rows += int(getattr(record, "rows", 0))
        self.files += getattr(record, "files", [])
