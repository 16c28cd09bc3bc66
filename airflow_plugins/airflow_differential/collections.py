"""Collections for Airflow's components, read from their logs without Spark. Times are in ms."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dbt_incremental_dd.api import Database


def database(state_root: str) -> Database:
    """The collections under a state root. Raises ImportError, stating what to install, if the engine is missing."""
    try:
        import dbt_incremental_dd
    except ImportError as error:
        raise ImportError("Install dbt-incremental-dd where this task runs: pip install dbt-incremental-dd") from error
    return dbt_incremental_dd.open(state_root)


def upper(state_root: str, name: str) -> int:
    """A collection's frontier (ms): times below it are final. 0 if it has never been stored."""
    from dbt_incremental_dd.core.errors import StateError

    try:
        return int(database(state_root)[name].frontiers.upper)
    except StateError:
        return 0


def reclaimable(state_root: str, name: str, retain_history: str | None) -> dict[str, int]:
    """What compacting a collection would gain: files, updates, and ``age`` in ms; all 0 if it has never been stored."""
    from dbt_incremental_dd.core.errors import StateError
    from dbt_incremental_dd.core.time import parse_duration

    try:
        found = database(state_root)[name].reclaimable(
            None if retain_history is None else parse_duration(retain_history)
        )
    except StateError:
        return {"files": 0, "updates": 0, "age": 0}
    return {"files": found.files, "updates": found.updates, "age": found.age}


def due(state_root: str, names: Collection[str], now: int | None = None, threads: int = 1) -> list[str]:
    """The collections among ``names`` (default: all) that must be run at ``now`` (ms; default: the clock's time) so
    that target lags are kept. What has never been stored is due."""
    found = database(state_root)
    wanted = {name.lower() for name in names}
    known = {collection.name for collection in found.collections()}
    return [*sorted(wanted - known), *(name for name in found.due(now, threads).models if not names or name in wanted)]


def advance(state_root: str, source: str, complete_up_to: int, *, first: bool) -> int:
    """Declares a source complete up to a time (ms). Returns the time up to which it is complete now. ``first``: it may
    be new."""
    return int(database(state_root).advance(source, complete_up_to, first=first))


def require_managed(state_root: str, source: str, *, first: bool) -> None:
    """Raises what ``advance`` would raise for this source."""
    database(state_root).require_managed(source, first=first)


def missing(state_root: str, name: str) -> str:
    """A message about a collection that has never been stored; empty if it has been."""
    known = [collection.name for collection in database(state_root).collections()]
    if name.lower() in known:
        return ""
    return f"There is no collection {name} under {state_root} yet; known are {', '.join(known) or 'none'}"


def state(state_root: str, name: str) -> dict[str, Any]:
    """A collection's frontiers (ms) and sizes, for XComs and asset events."""
    found = database(state_root)[name].status()
    names = ("since", "upper", "rows", "updates", "files", "bytes")
    return {"collection": found.name, **{key: getattr(found, key) for key in names}}


def overview(state_root: str) -> list[dict[str, Any]]:
    """Every collection's status, for the page. Times are in ms; ``lag`` is how far the clock is ahead."""
    from dbt_incremental_dd.core.time import now

    clock = now()
    return [{**asdict(found), "at": found.at, "lag": clock - found.at} for found in database(state_root).status()]


def history(state_root: str, name: str, latest: int) -> list[dict[str, Any]]:
    """A collection's last ``latest`` commits, oldest first."""
    return [asdict(entry) for entry in database(state_root)[name].history(latest)]
