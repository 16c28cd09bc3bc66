"""What a collection of many files costs a run before any of them is read: log entries and statistics without data.

``python -m benchmarks.many_files --files 10000 --rows 100000``: a billion rows. ``--store`` has them in S3, a server
beside the driver, where each request takes so many ms.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.results import add_options, write
from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import LONG, STRING
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.files import matching
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.log import KNOWN, Log
from tests.servers.s3 import serving
from tests.servers.slow_proxy import slowed

_VISIBLE = Schema((Column("k", LONG), Column("v", STRING)))
_STORED = Schema((*_VISIBLE.columns, TIME_COLUMN, DIFF_COLUMN))
_BYTES_PER_ROW = 50
_AT_ONCE = 500
_REPEATS = 5
_KEYS = 1_000


def main() -> int:
    """Always 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000, help="of the collection (default: 10,000)")
    parser.add_argument("--rows", type=int, default=100_000, help="of each file (default: 100,000)")
    parser.add_argument("--store", type=float, help="in S3, with so many ms for each request")
    add_options(parser, "many_files")
    options = parser.parse_args()
    with _storage(options.folder, options.store) as storage:
        found = _measured(storage.collection("m.large"), options.files, options.rows)
    print(json.dumps(found, indent=2), flush=True)
    write(options.json, found)
    return 0


@contextmanager
def _storage(folder: Path, delay: float | None) -> Iterator[Storage]:
    shutil.rmtree(folder / "state", ignore_errors=True)
    if delay is None:
        yield Storage(str(folder / "state"))
        return
    with (
        tempfile.TemporaryDirectory() as objects,
        serving(Path(objects)) as s3,
        slowed(s3.endpoint, delay / 1000) as proxy,
    ):
        yield Storage(f"{s3.root}/state", s3.through(proxy.endpoint))


def _measured(place: CollectionStore, files: int, rows: int) -> dict[str, float]:
    """Seconds, by what is done; and what 1,000 keys would have read."""
    started = time.perf_counter()
    _fill(place, files, rows)
    log = _current(place)
    chance = random.Random(1)
    spread = {"k": sorted(chance.sample(range(files * rows), _KEYS))}
    recent = {"k": list(range(files * rows - _KEYS, files * rows))}
    found = {
        "rows": files * rows,
        "made": time.perf_counter() - started,
        "loaded by a new process": _timed(lambda: _current(place), KNOWN.clear),
        "looked at again": _timed(lambda: _current(place)),
        "a frontier moves": _timed(lambda: _current(place).advance(_current(place).frontiers.upper + 1).await_entry()),
        "a file is added": _timed(lambda: _add(place, rows)),
        "files to merge are found": _timed(lambda: _current(place).mergeable()),
    }
    for name, keys in (("latest", recent), ("random", spread)):
        found[f"files of {_KEYS} {name} keys are found"] = _timed(lambda keys=keys: matching(log.files, keys))  # type: ignore[misc]
        found[f"files of {_KEYS} {name} keys"] = len(matching(log.files, keys))
    return {**found, "peak memory, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}


def _fill(place: CollectionStore, files: int, rows: int) -> None:
    log = place.create(_STORED)
    for first in range(0, files, _AT_ONCE):
        added = tuple(_file(number, rows, 1) for number in range(first, min(first + _AT_ONCE, files)))
        manifest = place.write_manifest(ModelManifest(schema=_VISIBLE))
        log = log.commit(Commit(add=added, upper=2 + first, manifest=manifest))


def _file(number: int, rows: int, t: int) -> DataFile:
    bounds = {"k": (number * rows, (number + 1) * rows - 1), "v": ("a", "z")}
    return DataFile(f"data/{number:08d}.parquet", rows, rows * _BYTES_PER_ROW, t, t, 1, 1, bounds)


def _current(place: CollectionStore) -> Log:
    log = place.log()
    assert log is not None
    return log


def _add(place: CollectionStore, rows: int) -> None:
    log = _current(place)
    upper = log.frontiers.upper
    manifest = place.write_manifest(ModelManifest(schema=_VISIBLE))
    log.commit(Commit(add=(_file(len(log.files), rows, upper),), upper=upper + 1, manifest=manifest))


def _timed(step: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    seconds = []
    for _ in range(_REPEATS):
        before()
        started = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - started)
    return round(statistics.median(seconds), 4)


if __name__ == "__main__":
    sys.exit(main())
