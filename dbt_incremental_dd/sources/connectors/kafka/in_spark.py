"""Messages read by Spark's own Kafka connector, in parallel, where the session has it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from dbt_incremental_dd.sources.connectors.kafka.client import Span
from dbt_incremental_dd.sources.connectors.kafka.feed import Feed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_AT_A_TIME = 250_000
"""Messages of one task, about."""


def read(spark: SparkSession, feed: Feed, spans: Sequence[Span]) -> DataFrame | None:
    """The spans' committed messages; None where the session has no connector, or the options are not known in its
    terms: those for security have other names there, and are given as ``kafka.<name>``."""
    if feed.java is None:
        return None
    wanted = [span for span in spans if span.start < span.end]
    tasks = sum(-(-(span.end - span.start) // _AT_A_TIME) for span in wanted)
    options = {
        **feed.java,
        "kafka.isolation.level": "read_committed",
        "assign": json.dumps({feed.topic: [span.partition for span in wanted]}),
        "startingOffsets": json.dumps({feed.topic: {str(span.partition): span.start for span in wanted}}),
        "endingOffsets": json.dumps({feed.topic: {str(span.partition): span.end for span in wanted}}),
        "minPartitions": str(tasks),
        "failOnDataLoss": "true",
    }
    try:
        frame = spark.read.format("kafka").options(**options).load()
        frame.schema  # noqa: B018 - under Spark Connect a missing connector shows only when it is analysed
    except AnalysisException:
        return None
    return frame.select("partition", "offset", "key", "value")
