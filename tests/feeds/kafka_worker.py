"""A process that takes a topic in once, and may be ended in the middle: ``python -m tests.feeds.kafka_worker FOLDER
SERVERS TOPIC``, with ``DD_STOP_AT``."""

from __future__ import annotations

import sys
from pathlib import Path

from dbt_incremental_dd.core import thresholds
from dbt_incremental_dd.runtime.session import open_session
from tests.conftest import SETTINGS
from tests.feeds.kafka import Reader, spec_of


def main(folder: Path, servers: str, topic: str) -> None:
    """One intake of appended messages, by way of files: the session has no connector."""
    thresholds.TAKEN_ROWS = 1
    settings = {**SETTINGS, "spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    reader = Reader(open_session(str(folder / "session"), settings), folder, spec_of(servers, topic, envelope="append"))
    log = reader.storage.collection("s.t").log()
    reader.time = 100 if log is None else log.frontiers.last
    reader.take()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
