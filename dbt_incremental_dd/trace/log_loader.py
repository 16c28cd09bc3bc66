"""Loads logs: what this process or this machine knows of one and the entries after it, or all of it by delta-rs."""

from __future__ import annotations

from collections.abc import Mapping

from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import create_table_with_add_actions

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.time import BEGINNING
from dbt_incremental_dd.storage import uploads
from dbt_incremental_dd.storage.objects import objects_of
from dbt_incremental_dd.storage.uris import is_remote
from dbt_incremental_dd.trace import entries
from dbt_incremental_dd.trace.checkpoints import checkpoint_interval
from dbt_incremental_dd.trace.commit import Commit, properties
from dbt_incremental_dd.trace.entry_reader import read_entry
from dbt_incremental_dd.trace.log import KNOWN, Log
from dbt_incremental_dd.trace.log_cache import Checked
from dbt_incremental_dd.trace.log_snapshot import read_snapshot

_REBUILD = "Rebuild it with `dbt run --full-refresh --select` and its name."
_MOST_ENTRIES = 50
"""Of others, read one by one."""
_SETTINGS = {
    # Bounds of all columns, because reads need those of `dd_time`, which is among the last.
    "delta.dataSkippingNumIndexedCols": "-1",
}


def load(
    name: str,
    uri: str,
    storage_options: Mapping[str, str] | None = None,
    checked: Checked | None = None,
    copies: str | None = None,
) -> Log | None:
    """The log's newest version; None if there is no such trace. Raises StateError if it is damaged.

    ``checked``: a log that was looked at moments ago is taken to be as it was. ``copies``: as for ``Log``.
    """
    uploads.settle(entries.entries_of(uri))
    known = KNOWN.newest(uri, storage_options or {}, checked)
    if known is None and is_remote(uri):
        known = _caught_up(name, uri, storage_options or {}, copies)
        if known is not None and checked is not None:
            checked.add(uri)
    if known is not None and known.name == name:
        return known
    mark = entries.marked(uri)
    try:
        table = DeltaTable(uri, storage_options=dict(storage_options or {}))
        log = Log.of(name, uri, table, storage_options, copies)
    except TableNotFoundError:
        entries.require_marked(name, uri, -1, BEGINNING, mark)
        return None
    except (DeltaError, OSError, ValueError) as error:
        raise StateError(
            f"the log of {name} at {uri} cannot be read: {error}",
            _REBUILD,
        ) from error
    entries.require_marked(name, uri, log.version, log.frontiers.last, mark)
    entries.require_whole(name, uri, log.version)
    log.remember(None)
    if checked is not None:
        checked.add(uri)
    return log


def load_version(
    name: str,
    uri: str,
    version: int,
    storage_options: Mapping[str, str] | None = None,
    checked: Checked | None = None,
    copies: str | None = None,
) -> Log:
    """A version of the log. Raises StateError if its entries are gone. ``checked``, ``copies``: as in ``load``."""
    uploads.settle(entries.entries_of(uri))
    if copies is not None and KNOWN.latest(uri) is None:
        _noted(uri, storage_options, copies)
    known = KNOWN.at(uri, storage_options or {}, version, checked)
    if known is not None and known.name == name:
        return known
    try:
        table = DeltaTable(uri, version=version, storage_options=dict(storage_options or {}))
        entries.require_whole(name, uri, version)
        return Log.of(name, uri, table, storage_options, copies)
    except (DeltaError, OSError, ValueError) as error:
        raise StateError(f"version {version} of {name} is gone from {uri}: {error}", _REBUILD) from error


def create(
    name: str,
    uri: str,
    schema: Schema,
    storage_options: Mapping[str, str] | None = None,
    copies: str | None = None,
) -> Log:
    """Creates an empty trace of ``schema`` (which includes ``dd_time`` and the diff columns). Returns the existing
    log if another writer came first. Raises StateError if it cannot be written."""
    reached("log: before")
    try:
        create_table_with_add_actions(
            uri,
            DeltaSchema.from_json(schema.to_json()),
            [],
            configuration={**_SETTINGS, "delta.checkpointInterval": str(checkpoint_interval(uri))},
            storage_options=dict(storage_options or {}),
            commit_properties=properties(Commit(upper=0, since=0)),
        )
    except (DeltaError, OSError) as error:
        existing = load(name, uri, storage_options, copies=copies)
        if existing is not None:
            return existing
        raise StateError(
            f"{name} cannot be stored at {uri}: {error}", "Check that `state_root` exists and can be written."
        ) from error
    reached("log: created")
    made = load(name, uri, storage_options, copies=copies)
    if made is None:
        raise StateError(f"{name} was stored at {uri} but cannot be found there", "Check `state_root`.")
    made.settle(made.version)
    return made


def _noted(uri: str, options: Mapping[str, str] | None, copies: str) -> Log | None:
    """The version that this machine has noted of a log in object storage, if any. It becomes known, and may be old."""
    found = read_snapshot(copies)
    if found is None or found.uri != uri:
        return None
    log = Log(
        found.name,
        uri,
        version=found.version,
        schema=found.schema,
        files=found.files,
        moved=found.moved,
        options=options,
        copies=copies,
    )
    KNOWN.remember(uri, options or {}, found.version, log, found.tag)
    return log


def _caught_up(name: str, uri: str, options: Mapping[str, str], copies: str | None) -> Log | None:
    """The newest version of a log in object storage, by a former one and the entries after it; None where none is
    known, or where it takes more."""
    log = KNOWN.latest(uri) or (_noted(uri, options, copies) if copies is not None else None)
    if log is None or log.name != name or KNOWN.at(uri, options, log.version) is None:
        return None
    tag = None
    for _ in range(_MOST_ENTRIES):
        objects, path = objects_of(entries.entry_path(uri, log.version + 1), options)
        try:
            data, tag_of_next = objects.read_tagged(path)
        except FileNotFoundError:
            if tag is not None:
                log.remember(tag)
            return log
        except OSError:
            return None
        entry = read_entry(data, log.schema)
        if entry is None:
            return None
        log, tag = log.after(entry), tag_of_next
    return None
