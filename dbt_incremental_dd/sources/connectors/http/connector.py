"""Events that clients have sent to the server: the files of the source's inbox, each of which is read once.

Progress is that of files, of those in the inbox that have been taken in. They are moved out of it once they are many,
so that a run lists little more than what is new. Some stay, because a file that moves looks to ``dbt-dd watch`` like
one that comes.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial

from pyarrow import fs as pafs

from dbt_incremental_dd.sources.connectors.files import connector as files
from dbt_incremental_dd.sources.connectors.files.columns import first_columns
from dbt_incremental_dd.sources.connectors.files.listing import State, listing
from dbt_incremental_dd.sources.connectors.files.spec import FilesSpec
from dbt_incremental_dd.sources.connectors.http.spec import HttpSpec
from dbt_incremental_dd.sources.poll import PollRequest
from dbt_incremental_dd.sources.poll_result import PollResult
from dbt_incremental_dd.sources.records import no_records
from dbt_incremental_dd.sources.spec import SourceSpec
from dbt_incremental_dd.storage.filesystems import make_folder
from dbt_incremental_dd.trace.inbox import Inbox, InboxSettings
from dbt_incremental_dd.trace.layout import Storage

__all__ = ["SPEC", "change_token", "poll", "poll_interval"]

SPEC = HttpSpec
_MOST_FILES = 100
_MOST_BYTES = 16 << 20
"""Of files in the inbox that have been taken in; at most a half of what may wait there."""
_POLL_SECONDS = 1.0
"""The inbox may be in object storage, where a look is a request."""


def poll(request: PollRequest[HttpSpec]) -> PollResult | None:
    """What has been sent since the last intake; None if nothing has."""
    spec, inbox = request.spec, Inbox(request.place)
    settings = InboxSettings(spec.remember_keys, spec.inbox_bytes)
    if inbox.settings() != settings:
        inbox.declare(settings)
    most = min(_MOST_BYTES, settings.inbox_bytes // 2)
    known = {name: tuple(state) for name, state in request.progress.get("files", {}).items()}
    while True:
        there = _listed(request.storage, inbox)
        seen = {name: state for name, state in there.items() if known.get(name) == state}
        gone = _put_away(inbox, seen, most)
        seen = {name: state for name, state in seen.items() if name not in gone}
        result = files.poll(_of_files(request, inbox, seen)) if len(there) > len(gone) + len(seen) else None
        if result is None:
            return None if request.stored is not None else _nothing(request, inbox)
        taken = {name: tuple(state) for name, state in result.progress["files"].items()}
        repeated = inbox.repeated([name for name in taken if name not in seen])
        if not repeated:
            return replace(result, confirm=partial(_tidy, inbox, taken, most))
        inbox.discard(repeated)
        for uri in result.scratch:
            request.storage.remove(uri)


def change_token(storage: Storage, spec: HttpSpec) -> Hashable:
    """The files in the inbox."""
    return frozenset(Inbox(storage.collection(spec.name)).waiting())


def poll_interval(spec: HttpSpec) -> float:
    """Seconds between two looks at the inbox."""
    return _POLL_SECONDS


def _listed(storage: Storage, inbox: Inbox) -> dict[str, State]:
    """The files in the inbox, by name."""
    filesystem, path = storage.filesystem(inbox.new)
    make_folder(filesystem, path)
    info = filesystem.get_file_info(path)
    return listing(filesystem, info, path) if info.type == pafs.FileType.Directory else {}


def _files_spec(spec: HttpSpec, inbox: Inbox) -> FilesSpec:
    """A source that has the inbox's files."""
    same = {field.name: getattr(spec, field.name) for field in fields(SourceSpec)}
    return FilesSpec(**{**same, "path": inbox.new, "format": "json"})


def _of_files(request: PollRequest[HttpSpec], inbox: Inbox, seen: Mapping[str, State]) -> PollRequest[FilesSpec]:
    """The request as one for the inbox's files, of which some have been taken in."""
    return PollRequest(
        request.workspace,
        request.place,
        _files_spec(request.spec, inbox),
        progress={"files": {name: list(state) for name, state in seen.items()}, "kind": "folder"},
        stored=request.stored,
        log=request.log,
        scope=request.scope,
        in_pieces=request.in_pieces,
    )


def _nothing(request: PollRequest[HttpSpec], inbox: Inbox) -> PollResult:
    """No events, in the declared columns: so the first run makes the source known to the server."""
    filesystem, _ = request.storage.filesystem(inbox.new)
    columns = first_columns(request.workspace.session, _files_spec(request.spec, inbox), filesystem, ())
    assert columns is not None, "all columns are declared"
    return PollResult(no_records(request.workspace, columns), {"files": {}, "kind": "folder"})


def _put_away(inbox: Inbox, taken: Mapping[str, State], most: int) -> Collection[str]:
    """Moves files that have been taken in if they are many, or more than ``most`` bytes; the names of those that have
    been moved."""
    if len(taken) <= _MOST_FILES and sum(size for size, _ in taken.values()) <= most:
        return ()
    inbox.put_away(taken)
    return taken


def _tidy(inbox: Inbox, taken: Mapping[str, State], most: int) -> None:
    """After the intake; what fails is done by the next one."""
    with suppress(OSError):
        _put_away(inbox, taken, most)
