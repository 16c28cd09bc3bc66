"""What a project's run has read: of differential models by dbt's results, of others by Spark's log of events."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

_TOLD = ("input_rows", "rows_found", "rows_read", "bytes_read")


def by_model(results: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Of each model that was brought up to date by deltas: changed rows in and out, and what was read for them."""
    found = {}
    for one in results:
        told = one["adapter_response"]
        if told.get("strategy") == "delta":
            changed_out = told["rows_added"] + told["rows_removed"]
            found[one["unique_id"].rpartition(".")[2]] = {
                **{name: told[name] for name in _TOLD},
                "changed_out": changed_out,
            }
    return found


def all_of(results: list[dict[str, Any]], events: Path) -> dict[str, int]:
    """Rows and bytes that a run has read; ``events``: a folder of Spark's logs, which is emptied."""
    told = [one["adapter_response"] for one in results]
    rows, size = (sum(one.get(name, 0) for one in told) for name in ("rows_read", "bytes_read"))
    for path in sorted(events.rglob("*")) if events.exists() else ():
        if path.is_file() and not path.name.startswith("."):
            more_rows, more_bytes = _noted(path)
            rows, size = rows + more_rows, size + more_bytes
    for path in list(events.iterdir()) if events.exists() else ():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return {"rows": rows, "bytes": size}


def _noted(path: Path) -> tuple[int, int]:
    """Records and bytes that tasks have read from files."""
    rows = size = 0
    with path.open() as lines:
        for line in lines:
            if '"SparkListenerTaskEnd"' in line:
                read = (json.loads(line).get("Task Metrics") or {}).get("Input Metrics", {})
                rows, size = rows + read.get("Records Read", 0), size + read.get("Bytes Read", 0)
    return rows, size
