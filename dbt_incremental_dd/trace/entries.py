"""The entries of a trace's log as files, and whether all of them are there and complete.

If the newest entry of a log is missing, delta-rs reads an older version; it reads an empty entry as a commit without
changes. Therefore each commit records its number of lines (its transactions come last), and writes a mark outside of
the log: ``<trace>/newest`` has the log's latest version and time. It is written once the entry is durable, hence never
before it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.time import Time, format_time
from dbt_incremental_dd.storage.uris import is_remote

TRANSACTIONS, LINES = "dd:transactions", "dd:lines"
"""Keys in an entry's commitInfo: its number of transactions, and its number of lines unless delta-rs adds some."""
_MARK = "newest"
_LENGTH = 64
_MOST = 100
"""Maximum number of entries checked; a checkpoint comes earlier."""


@dataclass(frozen=True)
class Mark:
    """A log's latest version, and its latest final time (ms)."""

    version: int
    last: Time


def entries_of(uri: str) -> str:
    """The folder of the commits' entries."""
    return f"{uri}/_delta_log"


def entry_path(uri: str, version: int) -> str:
    """The path of a commit's entry."""
    return f"{entries_of(uri)}/{version:020d}.json"


def checkpoint_paths(uri: str, version: int) -> tuple[str, ...]:
    """The files written by a checkpoint of that version; none if there is no such checkpoint."""
    path = f"{uri}/_delta_log/{version:020d}.checkpoint.parquet"
    return (path, f"{uri}/_delta_log/_last_checkpoint") if not is_remote(uri) and os.path.exists(path) else ()


def mark(uri: str, version: int, last: Time) -> None:
    """Writes a trace's mark on a local disk. Losing it only means that damage of the log is not detected."""
    if is_remote(uri):
        return
    descriptor = os.open(f"{uri}/{_MARK}", os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.pwrite(descriptor, f"{version} {last}".ljust(_LENGTH).encode(), 0)
    finally:
        os.close(descriptor)


def marked(uri: str) -> Mark | None:
    """The mark; None if it is missing or cannot be read."""
    if is_remote(uri):
        return None
    try:
        with open(f"{uri}/{_MARK}", "rb") as file:
            version, last = file.read(_LENGTH).split()
        return Mark(int(version), int(last))
    except (OSError, ValueError):
        return None


def require_marked(name: str, uri: str, version: int, last: Time, before: Mark | None) -> None:
    """Raises StateError if the log ends before the mark that existed when it was loaded."""
    if before is not None and before.version > version:
        raise StateError(
            f"the log of {name} at {uri} has lost its newest entries: it ends with version {version}, final at "
            f"{format_time(last)}, and has been at version {before.version}, final at {format_time(before.last)}",
            remedy(uri),
        )


def require_whole(name: str, uri: str, version: int) -> None:
    """Raises StateError if an entry since the last checkpoint is empty, or the newest one is truncated. Objects in
    object storage are always complete."""
    if is_remote(uri):
        return
    for number in range(version, max(version - _MOST, -1), -1):
        path = entry_path(uri, number)
        if checkpoint_paths(uri, number):
            return
        if _size(path) == 0 or (number == version and _is_cut(path)):
            raise StateError(f"entry {number} of the log of {name} at {uri} is empty or was cut", remedy(uri))


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _is_cut(path: str) -> bool:
    """Whether an entry has fewer lines than it records, or no commitInfo."""
    try:
        with open(path, "rb") as file:
            lines = [json.loads(line) for line in file.read().splitlines() if line.strip()]
    except FileNotFoundError:
        return False
    except ValueError:
        return True
    info = next((line["commitInfo"] for line in lines if "commitInfo" in line), None)
    if info is None:
        return True
    has_all = sum("txn" in line for line in lines) >= int(info.get(TRANSACTIONS, 0))
    return not has_all or len(lines) < int(info.get(LINES, 0))


def remedy(uri: str) -> str:
    """What to do about a damaged log."""
    return (
        "Restore it from a backup, or rebuild it: for a model, `dbt run --full-refresh --select` and its name; for a "
        f"source, remove {os.path.dirname(uri)}, and it is taken in again."
    )
