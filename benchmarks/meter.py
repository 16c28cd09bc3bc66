"""What Spark and the driver do between two moments: jobs, rows and bytes, from Spark's own event log."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path


def settings(folder: Path) -> dict[str, str]:
    """For a session whose event log lies in ``folder``, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.resolve().as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }


@dataclass(frozen=True)
class Work:
    """Counts; ``*_bytes`` in bytes. What the driver reads and writes without a job is not in them."""

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

    def take(self) -> Work:
        """The work since the last call. Jobs are complete in the log as soon as they have ended."""
        files = [path for path in self._folder.iterdir() if not path.name.endswith(".crc")]
        if len(files) != 1:
            raise ValueError(f"{self._folder} should hold one event log and has {len(files)}; remove them first")
        with files[0].open("rb") as log:
            log.seek(self._position)
            lines = log.read().split(b"\n")
        self._position += sum(len(line) + 1 for line in lines[:-1])
        return sum((_work(json.loads(line)) for line in lines[:-1]), Work())


def _work(event: dict[str, object]) -> Work:
    if event["Event"] == "SparkListenerJobStart":
        return Work(jobs=1)
    metrics = event.get("Task Metrics") if event["Event"] == "SparkListenerTaskEnd" else None
    if not isinstance(metrics, dict):
        return Work()
    read, written = metrics["Input Metrics"], metrics["Output Metrics"]
    return Work(0, 1, read["Records Read"], read["Bytes Read"], written["Records Written"], written["Bytes Written"])
