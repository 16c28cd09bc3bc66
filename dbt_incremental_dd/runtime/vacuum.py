"""Removing what nothing needs any more: files that compaction has replaced, what runs left that were ended, and entries
of logs that a checkpoint sums up.

Files go when they are older than a while, because a reader may still be at them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator

from pyarrow import fs as pafs

from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.open_table.registry import FORMATS
from dbt_incremental_dd.parquet.page_index import SUFFIX
from dbt_incremental_dd.runtime.arrangements import readers
from dbt_incremental_dd.storage.exclusive import SCRATCH
from dbt_incremental_dd.trace.inbox import Inbox
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.lock import writing
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.progress import size_text

DEFAULT_AGE = 86_400_000
"""Milliseconds."""
_KEPT_MANIFESTS = 10
_KEPT_ENTRIES = 20
"""Of a log, since its last checkpoint; with more it gets another one."""
_VERSION = re.compile(r"(\d{20})\.(json|checkpoint\.)")


def vacuum(storage: Storage, names: Collection[str] | None = None, older_than: int = DEFAULT_AGE) -> Iterator[str]:
    """Removes what is not needed and older (ms), of the named collections or of all; yields a line about each."""
    before = time.time_ns() - older_than * 1_000_000
    used = readers(storage)
    for place in storage.collections(own=True):
        if names is None or place.name in names:
            with writing(place):
                arrangements = [one for one in place.arrangements() if one.uri in used]
                line = _Vacuum(storage, before).collection(place, arrangements)
            yield line
    if names is None:
        swept = _Vacuum(storage, before)
        swept.sweep(f"{storage.root}/scratch", ())
        yield swept.line("scratch files")


def vacuum_one(place: CollectionStore, older_than: int) -> str:
    """The same of one collection without arrangements. Call it as the collection's writer."""
    return _Vacuum(place.storage, time.time_ns() - older_than * 1_000_000).collection(place, ())


class _Vacuum:
    """One collection's removals."""

    def __init__(self, storage: Storage, before: int) -> None:
        self._storage = storage
        self._before = before
        self._files = 0
        self._bytes = 0

    def line(self, name: str) -> str:
        """What was done."""
        return f"{name}: {self._files:,} files removed, {size_text(self._bytes)}"

    def collection(self, place: CollectionStore, arrangements: Collection[CollectionStore]) -> str:
        """Its trace, states, manifests and links. ``arrangements``: those that some model uses."""
        log = place.log()
        if log is None:
            return self.line(place.name)
        manifest = place.read_manifest(log.manifest)
        self._trace(log.uri, {file.path for file in log.files})
        self._entries(log, log.version)
        inner = manifest.inner if manifest is not None else {}
        kept = set()
        for name, version in inner.items():
            state = place.inner(name)
            kept.add(state.uri)
            newest = state.log()
            logs = [one for one in (newest, state.log_at(version)) if one is not None]
            self._trace(state.uri, {file.path for one in logs for file in one.files})
            if newest is not None:
                self._entries(newest, version)
        for arrangement in arrangements:
            kept.add(arrangement.uri)
            self._arrangement(arrangement)
        self._other_states(place, kept)
        self._table(place, log, manifest.output if isinstance(manifest, ModelManifest) else "")
        self._manifests(place, log.manifest)
        self._inbox(Inbox(place))
        return self.line(place.name)

    def _arrangement(self, place: CollectionStore) -> None:
        with writing(place):
            log = place.log()
            if log is not None:
                self._trace(log.uri, {file.path for file in log.files})
                self._entries(log, log.version)

    def _trace(self, uri: str, live: set[str]) -> None:
        _, root = self._storage.filesystem(uri)
        self.sweep(f"{uri}/data", {f"{root}/{path}" for path in live} | {f"{root}/{path}{SUFFIX}" for path in live})

    def _entries(self, log: Log, needed: int) -> None:
        """Entries before the last checkpoint from which the log can be loaded at the version ``needed``, and after;
        and those that a killed process has not completed."""
        filesystem, path = self._storage.filesystem(f"{log.uri}/_delta_log")
        found = filesystem.get_file_info(pafs.FileSelector(path, allow_not_found=True, recursive=True))
        versions = {info.path: int(match[1]) for info in found if (match := _VERSION.match(info.base_name))}
        checkpoints = (version for of, version in versions.items() if ".checkpoint." in of and version <= needed)
        last = max(checkpoints, default=-1)
        if log.version == needed and needed - last > _KEPT_ENTRIES:
            log.checkpoint()
            last = needed
        kept = {
            info.path
            for info in found
            if (versions[info.path] >= last if info.path in versions else not info.base_name.endswith(SCRATCH))
        }
        # A checkpoint that another thread writes meanwhile is not among what was found, and stays.
        self._remove(filesystem, found, kept)

    def _other_states(self, place: CollectionStore, kept: set[str]) -> None:
        """States that no commit of the model names, of an earlier plan, or of a first run that was ended; arrangements
        that no model uses any more."""
        filesystem, path = self._storage.filesystem(f"{place.uri}/inner")
        known = {self._storage.filesystem(uri)[1] for uri in kept}
        for folder in filesystem.get_file_info(pafs.FileSelector(path, allow_not_found=True)):
            if folder.path in known:
                continue
            with writing(place.inner(folder.base_name)):
                found = filesystem.get_file_info(pafs.FileSelector(folder.path, allow_not_found=True, recursive=True))
                if all((info.mtime_ns or 0) < self._before for info in found):
                    self.sweep(f"{place.uri}/inner/{folder.base_name}", ())
                    if self._storage.is_local:
                        filesystem.delete_dir(folder.path)

    def _table(self, place: CollectionStore, log: Log, output: str) -> None:
        """Of the open table what no version needs that can be read; one that the model has no more."""
        uri = place.table_uri
        needed = FORMATS[output].needed(self._storage, uri, log.frontiers.since) if output in FORMATS else None
        if needed is not None:
            _, root = self._storage.filesystem(uri)
            self.sweep(uri, {f"{root}/{path}" for path in needed})
        elif not output and self._storage.list_names(uri):
            self._storage.remove(uri)

    def _inbox(self, inbox: Inbox) -> None:
        """What was sent to a source and taken in, once its keys need not be remembered any more; what a server has not
        completed."""
        settings = inbox.settings()
        if settings is None:
            return
        remembered = _Vacuum(self._storage, min(self._before, time.time_ns() - settings.remember_keys * 1_000_000))
        remembered.sweep(inbox.taken, ())
        self._files, self._bytes = self._files + remembered._files, self._bytes + remembered._bytes
        filesystem, path = self._storage.filesystem(inbox.new)
        found = filesystem.get_file_info(pafs.FileSelector(path, allow_not_found=True))
        self._remove(filesystem, found, {info.path for info in found if not info.base_name.endswith(SCRATCH)})

    def _manifests(self, place: CollectionStore, current: int | None) -> None:
        filesystem, path = self._storage.filesystem(f"{place.uri}/manifests")
        found = filesystem.get_file_info(pafs.FileSelector(path, allow_not_found=True))
        newest = sorted((info.path for info in found), reverse=True)[:_KEPT_MANIFESTS]
        self.sweep(f"{place.uri}/manifests", {*newest, f"{path}/{current}.json"})

    def sweep(self, uri: str, kept: Collection[str]) -> None:
        """Removes a folder's old files but for those that are kept, and folders that have become empty."""
        filesystem, path = self._storage.filesystem(uri)
        found = filesystem.get_file_info(pafs.FileSelector(path, allow_not_found=True, recursive=True))
        self._remove(filesystem, found, kept)

    def _remove(self, filesystem: pafs.FileSystem, found: list[pafs.FileInfo], kept: Collection[str]) -> None:
        files = [info for info in found if info.type == pafs.FileType.File]
        gone = [info for info in files if info.path not in kept and (info.mtime_ns or 0) < self._before]
        for info in gone:
            reached("vacuum: before a file")
            filesystem.delete_file(info.path)
            self._files += 1
            self._bytes += info.size or 0
        left = {info.path for info in files} - {info.path for info in gone}
        folders = sorted((info.path for info in found if info.type == pafs.FileType.Directory), key=len, reverse=True)
        for folder in folders if gone else ():
            if not any(other.startswith(f"{folder}/") for other in left):
                filesystem.delete_dir(folder)
