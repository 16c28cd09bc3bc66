"""A process that takes a topic in once, and may be ended in the middle: ``python -m tests.feeds.kafka_worker FOLDER
SERVERS TOPIC``, with ``DD_STOP_AT``."""

from __future__ import annotations

import sys
from pathlib import Path

from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.runtime.session import open_session
from tests.conftest import SETTINGS
from tests.feeds.kafka import Reader, spec_of
from tests.short_lived import SHORT_LIVED


def main(folder: Path, servers: str, topic: str) -> None:
    """One intake of appended messages, by way of files: the session has no connector."""
    settings = {**SETTINGS, "spark.driver.memory": "1g", "spark.driver.extraJavaOptions": SHORT_LIVED}
    spark, spec = open_session(str(folder / "session"), settings), spec_of(servers, topic, envelope="append")
    reader = Reader(spark, folder, spec, Thresholds(taken_rows=1))
    log = reader.storage.collection("s.t").log()
    reader.time = 100 if log is None else log.frontiers.last
    reader.take()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
