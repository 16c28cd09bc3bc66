"""What Spark and the driver do between two moments: jobs, rows and bytes, from Spark's own event log."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from dbt_incremental_dd.parquet import page_reader
from dbt_incremental_dd.trace import driver_reader
from dbt_incremental_dd.trace import write as trace_write
from dbt_incremental_dd.trace.files import may_hold


def settings(folder: Path) -> dict[str, str]:
    """For a session whose event log lies in ``folder``, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.resolve().as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        # Spark counts no bytes of vectored reads.
        "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
    }


@dataclass(frozen=True)
class Work:
    """Counts; ``*_bytes`` in bytes.

    What the driver reads without a job counts by the row groups that its keys leave, and by the columns it wants; of
    files with an index of pages it counts as it is, the index included.
    """

    jobs: int = 0
    tasks: int = 0
    read_rows: int = 0
    read_bytes: int = 0
    written_rows: int = 0
    written_bytes: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Work)))


class Meter:
    """Reads the event log of the one session that writes into ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._position = 0
        self._driver = _Driver()

    def take(self) -> Work:
        """The work since the last call. Jobs are complete in the log as soon as they have ended."""
        return sum(map(_work, self._events()), self._driver.take())

    def _events(self) -> list[dict[str, object]]:
        """What the log says since the last call. There is none before the session is open."""
        files = [path for path in self._folder.iterdir() if not path.name.endswith(".crc")]
        if len(files) > 1:
            raise ValueError(f"{self._folder} should hold one event log and has {len(files)}; remove them first")
        if not files:
            return []
        with files[0].open("rb") as log:
            log.seek(self._position)
            lines = log.read().split(b"\n")[:-1]
        self._position += sum(len(line) + 1 for line in lines)
        return [json.loads(line) for line in lines]


class _Driver(logging.Handler):
    """Listens to what the engine says of its reads and writes on the driver."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._told: list[dict[str, Any]] = []
        for module in (driver_reader, page_reader, trace_write):
            logger = logging.getLogger(module.__name__)
            logger.setLevel(logging.DEBUG)
            logger.propagate = False
            logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Remembers one read or write; what it comes to is counted later, so that it costs what is timed nothing."""
        self._told.append(vars(record))

    def take(self) -> Work:
        """The work since the last call."""
        told, self._told = self._told, []
        work = Work()
        for one in told:
            for path in one.get("paths", ()):
                work += _read(path, one["columns"], one["wanted"])
            if "read_bytes" in one:
                work += Work(read_rows=one["read_rows"], read_bytes=one["read_bytes"])
            if "paths" not in one and "rows" in one:
                work += Work(written_rows=one["rows"], written_bytes=one["bytes"])
        return work


def _read(path: str, columns: list[str], keys: Mapping[str, Sequence[Any]]) -> Work:
    """The rows of a file's row groups that may hold the keys, and the bytes of these columns in them."""
    footer = pq.read_metadata(path)
    names = {footer.schema.column(i).path.split(".")[0]: i for i in range(footer.num_columns)}
    work = Work()
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        if all(may_hold(_bounds(group, names[key]), values) for key, values in keys.items() if key in names):
            size = sum(group.column(names[c]).total_compressed_size for c in columns if c in names)
            work += Work(read_rows=group.num_rows, read_bytes=size)
    return work


def _bounds(group: pq.RowGroupMetaData, column: int) -> tuple[Any, Any] | None:
    found = group.column(column).statistics
    return (found.min, found.max) if found is not None and found.has_min_max else None


def _work(event: dict[str, object]) -> Work:
    if event["Event"] == "SparkListenerJobStart":
        return Work(jobs=1)
    metrics = event.get("Task Metrics") if event["Event"] == "SparkListenerTaskEnd" else None
    if not isinstance(metrics, dict):
        return Work()
    read, written = metrics["Input Metrics"], metrics["Output Metrics"]
    return Work(0, 1, read["Records Read"], read["Bytes Read"], written["Records Written"], written["Bytes Written"])
