"""dbt's snapshots: kept here by what has changed, beside dbt-spark's own over a Delta table.

``python -m benchmarks.snapshots --rows 1000000 --share 0.001 --days 3``, with pyspark 4.2, which Delta's connector is
made for. Both follow one Delta table of customers, in which each day a share of the rows change, and a tenth of that
come and go. Each day each way has one ``dbt snapshot``, a process of its own; seconds are of all of it. At the end both
must have the same versions.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from benchmarks.compared import DELTA_SETTINGS, has_delta, write_yaml
from benchmarks.results import add_options, table, write

_BIN = Path(sys.executable).parent
_WAYS = ("differential", "delta")
_FIRST = datetime(2024, 1, 1)


def main() -> int:
    """0 when both have the same versions."""
    options = _arguments()
    if not has_delta():
        raise SystemExit("Delta's connector is made for pyspark 4.2: run this with that one.")
    folder = options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    random = np.random.default_rng(1)
    raw = folder / "raw"
    write_deltalake(str(raw), _customers(np.arange(options.rows), 0))
    for way in _WAYS:
        _write_project(folder / way, way, raw)
    days = []
    for day in range(options.days + 1):
        if day:
            _change(raw, options.rows, options.share, day, random)
        days.append({way: _seconds(folder / way) for way in (_WAYS if day % 2 else _WAYS[::-1])})
        print(f"day {day}: " + ", ".join(f"{way} {days[-1][way]:.1f} s" for way in _WAYS), flush=True)
    versions = {way: _versions(folder / way) for way in _WAYS}
    write(options.json, {"rows": options.rows, "share": options.share, "days": days, "versions": versions})
    rows = [["first, s", *(f"{days[0][way]:.1f}" for way in _WAYS)]]
    rows += [[f"day {day}, s", *(f"{found[way]:.1f}" for way in _WAYS)] for day, found in enumerate(days) if day]
    print(table(["", *_WAYS], rows))
    print(f"versions: {versions}")
    return 0 if versions["differential"] == versions["delta"] else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the table (default: a million)")
    parser.add_argument("--share", type=float, default=0.001, help="of the rows that change a day (default: 0.001)")
    parser.add_argument("--days", type=int, default=3, help="after the first snapshot (default: 3)")
    add_options(parser, "snapshots")
    return parser.parse_args()


def _customers(ids: Any, day: int) -> pa.Table:
    """The customers' rows as of a day."""
    at = _FIRST + timedelta(days=day)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": pa.array([f"customer {id} of day {day}" for id in ids.tolist()]),
            "city": pa.array([f"city {(id * 7 + day) % 500}" for id in ids.tolist()]),
            "balance": pa.array([(id * 31 + day * 17) % 100_000 / 100 for id in ids.tolist()], pa.float64()),
            "changed": pa.array([at] * len(ids), pa.timestamp("us", "UTC")),
        }
    )


def _change(raw: Path, rows: int, share: float, day: int, random: Any) -> None:
    """Random rows change and go, others come."""
    count = max(int(rows * share), 10)
    ids = random.choice(rows, count + count // 10, replace=False)
    new = np.arange(count // 10) + rows + day * rows
    changed = _customers(np.concatenate([ids[:count], new]), day)
    merge = DeltaTable(str(raw)).merge(changed, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    gone = ", ".join(map(str, ids[count:].tolist()))
    DeltaTable(str(raw)).delete(f"id IN ({gone})")


def _write_project(folder: Path, way: str, raw: Path) -> None:
    """One snapshot of the table."""
    target = {"type": "differential", "schema": "s", "threads": 1}
    source: dict[str, Any] = {"name": "customers"}
    config = {
        "unique_key": "id",
        "strategy": "timestamp",
        "updated_at": "changed",
        "hard_deletes": "invalidate",
    }
    project: dict[str, Any] = {"name": "p", "profile": "p", "flags": {"send_anonymous_usage_stats": False}}
    if way == "delta":
        target["server_side_parameters"] = {**DELTA_SETTINGS, "spark.databricks.delta.snapshotPartitions": "2"}
        config["file_format"] = "delta"
        create = f"create table if not exists raw.customers using delta location '{raw}'"
        project["on-run-start"] = ["create database if not exists raw", create]
    else:
        source["config"] = {"meta": {"differential": {"path": str(raw), "format": "delta", "key": "id"}}}
    write_yaml(folder / "dbt_project.yml", project)
    write_yaml(folder / "profiles.yml", {"p": {"target": "dev", "outputs": {"dev": target}}})
    sources = [{"name": "raw", "schema": "raw", "tables": [source]}]
    snapshot = {"name": "history", "relation": "source('raw', 'customers')", "config": config}
    write_yaml(folder / "snapshots" / "snapshots.yml", {"sources": sources, "snapshots": [snapshot]})
    (folder / "models").mkdir()
    write_yaml(folder / "models" / "sources.yml", {"sources": sources})
    write_yaml(folder / "snapshots" / "snapshots.yml", {"snapshots": [snapshot]})


def _seconds(folder: Path) -> float:
    started = time.monotonic()
    _dbt(folder, "snapshot")
    return time.monotonic() - started


def _dbt(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "DBT_PROFILES_DIR": str(folder)}
    command = [str(_BIN / "dbt"), "--quiet", *arguments, "--project-dir", str(folder)]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{folder.name}: {done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def _versions(folder: Path) -> list[str]:
    """Their number, those that are open, and sums over their ids and times."""
    sql = (
        "select concat_ws(' ', count(*), count_if(dbt_valid_to is null), sum(id % 1000), "
        "sum(unix_millis(dbt_valid_from) % 1000003), count(distinct dbt_scd_id)) as found from s.history"
    )
    shown = _dbt(folder, "show", "--output", "json", "--inline", sql)
    return [line.strip() for line in shown.splitlines() if "found" in line]


if __name__ == "__main__":
    sys.exit(main())
