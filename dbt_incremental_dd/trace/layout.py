"""The layout of ``state_root``, and access to the collections in it.

    <state_root>/collections/<name>/trace/             Delta table: the collection's updates
    <state_root>/collections/<name>/trace/newest       the latest version of its log
    <state_root>/collections/<name>/manifests/<n>.json the manifest that a commit names by n
    <state_root>/collections/<name>/inner/<node>/      Delta table: an operator's arrangement or accumulators
    <state_root>/collections/<name>/inner/by.<column>.<mark>/   Delta table: its updates, arranged by another column
    <state_root>/collections/<name>/live/<n>/          links to the trace's files, or copies, which the relations read
    <state_root>/collections/<name>/plan-<key>.json    a model's compiled plan, signed with the key of that id
    <state_root>/collections/<name>/shown.json         how the relations show the trace
    <state_root>/locks/<name>                          locked by the process that writes the collection
    <state_root>/scratch/                              files of running jobs

Each relation name is one folder: characters that some file systems or URLs do not allow are encoded, as in ``~2F``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from urllib.parse import quote, unquote

from pyarrow import fs as pafs

from dbt_incremental_dd.core.errors import DifferentialError, StateError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.manifest import FORMAT_VERSION, Manifest
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.storage import checked_file, durable, uploads
from dbt_incremental_dd.storage.filesystems import filesystem_of, make_folder
from dbt_incremental_dd.storage.mirror import Mirror, mirror_of
from dbt_incremental_dd.storage.objects import objects_of
from dbt_incremental_dd.storage.uris import is_remote, require_safe
from dbt_incremental_dd.trace import log_loader
from dbt_incremental_dd.trace.log import ARRANGEMENT, Log
from dbt_incremental_dd.trace.log_cache import Checked
from dbt_incremental_dd.trace.look_ahead import Ahead, Asked, asked_below

DEFAULT_ROOT = ".dbt_incremental_dd"
"""The state root of a project that configures none."""


def state_root_of(text: str, folder: str) -> str:
    """A state root as an absolute path or a URI. A relative path is resolved against ``folder``."""
    if "://" in text:
        return text.rstrip("/")
    return os.path.normpath(os.path.join(folder, os.path.expanduser(text)))


def _folder_of(name: str) -> str:
    """Some readers interpret percent signs as URL encoding; names of dots would be other folders."""
    folder = quote(name, safe=".-_").replace("~", "%7E").replace("%", "~")
    return folder.replace(".", "~2E") if not folder.strip(".") else folder


def _name_of(folder: str) -> str:
    return unquote(folder.replace("~", "%"))


@dataclass(frozen=True)
class Storage:
    """A state root: a local folder or a URI, with delta-rs's options for it."""

    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Contains credentials, so it is excluded from ``repr``."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    """Limits of what is brought from there to the driver."""
    checked: Checked | None = field(default=None, compare=False, repr=False)
    """Within a run on object storage: the logs that it has looked at."""
    ahead: Ahead = field(default_factory=Ahead, compare=False, repr=False)
    """Within a run on object storage: what it has asked for at once, as it began."""

    def collection(self, name: str) -> CollectionStore:
        """The store of the collection called ``name`` (``schema.identifier``, case-insensitive)."""
        return CollectionStore(self, name.lower())

    def collections(self) -> tuple[CollectionStore, ...]:
        """The stores of all collections, by name."""
        found = map(_name_of, self._names_in(f"{self.root}/collections"))
        return tuple(CollectionStore(self, name) for name in sorted(found))

    def filesystem(self, uri: str) -> tuple[pafs.FileSystem, str]:
        """pyarrow's file system for a URI under the root, and the path within it."""
        return filesystem_of(uri, self.options)

    @property
    def is_local(self) -> bool:
        """Whether the root is on a local disk, where files can be renamed."""
        return not is_remote(self.root)

    def for_run(self) -> Storage:
        """The same for one run. In object storage it asks at once for what former runs have asked for one by one."""
        asked = self._asked
        if asked is None:
            return self
        with suppress(OSError, DifferentialError):  # of another run, which has told it
            uploads.settle(self.root)
        checked = Checked()

        def load(name: str, uri: str) -> Log | None:
            return log_loader.load(name, uri, self.options, checked, self.copies_of(uri))

        return replace(self, checked=checked, ahead=asked.again(load, self.read_bytes, self._names_in))

    def names_in(self, uri: str) -> tuple[str, ...]:
        """The names of the files and folders in a folder; none if there is no such folder."""
        found = self.ahead.folders.get(uri)
        if found is not None:
            return found
        asked = self._asked
        if asked is not None:
            asked.folder(uri)
        return self._names_in(uri)

    def _names_in(self, uri: str) -> tuple[str, ...]:
        filesystem, path = self.filesystem(uri)
        return tuple(one.base_name for one in filesystem.get_file_info(pafs.FileSelector(path, allow_not_found=True)))

    @property
    def _asked(self) -> Asked | None:
        mirror = self.mirror
        return None if mirror is None else asked_below(f"{mirror.folder_of(self.root)}/asked.json")

    def note_log(self, uri: str, name: str) -> None:
        """A run asks for the log."""
        asked = self._asked
        if asked is not None:
            asked.log(uri, name)

    def copies_of(self, uri: str) -> str | None:
        """The folder of this machine that has copies of a folder in object storage; None if there is none."""
        mirror = self.mirror
        return None if mirror is None else mirror.folder_of(uri)

    def scratch(self, label: str) -> str:
        """A new path for a running job's files."""
        return f"{self.root}/scratch/{label}-{os.getpid()}-{time.time_ns()}"

    @property
    def mirror(self) -> Mirror | None:
        """The copies of data files in object storage; None on a local disk, or where there are to be none."""
        if self.is_local or not self.thresholds.copied_bytes:
            return None
        return mirror_of(self.root, tuple(sorted(self.options.items())), self.thresholds.copied_bytes)

    def read_bytes(self, uri: str) -> bytes:
        """A small file under the root. Raises FileNotFoundError if it does not exist."""
        if not self.is_local:
            objects, path = objects_of(uri, self.options)
            return objects.read(path)
        with open(uri, "rb") as file:
            return file.read()

    def read_unchanging(self, uri: str) -> bytes:
        """The same of a file that is never written again: of an object store it is read once by this machine."""
        copy = self.copies_of(uri)
        if copy is None:
            return self.read_bytes(uri)
        data = checked_file.read(copy)
        if data is None:
            data = self.read_bytes(uri)
            checked_file.write(copy, data)
        return data

    def read_small(self, path: str) -> str | None:
        """The text of a small file under the root; None if it does not exist."""
        uri = f"{self.root}/{path}"
        if uri in self.ahead.files:
            found = self.ahead.files.pop(uri)
            return None if found is None else found.decode()
        uploads.settle(uri)
        asked = self._asked
        if asked is not None:
            asked.file(uri)
        try:
            return self.read_bytes(uri).decode()
        except FileNotFoundError:
            return None

    def write_small(self, path: str, text: str) -> None:
        """Replaces a small file under the root atomically."""
        if not self.is_local:  # an object becomes visible when it is complete
            self.write_small_later(path, text)
            uploads.settle(f"{self.root}/{path}")
            reached("small file: written")
            reached("small file: replaced")
            return
        filesystem, full = self.filesystem(f"{self.root}/{path}")
        folder, name = full.rsplit("/", 1)
        make_folder(filesystem, folder)
        made = f"{folder}/.{name}-{uuid.uuid4().hex}"
        with filesystem.open_output_stream(made) as out:
            out.write(text.encode())
        reached("small file: written")
        if durable.enabled:
            durable.sync_file(made)
        filesystem.move(made, full)
        if durable.enabled:
            durable.sync_folder(folder)
        reached("small file: replaced")

    def write_small_later(self, path: str, text: str) -> None:
        """The same; into object storage it is awaited by whoever reads the file, by the next commit of the collection
        that it belongs to, and at the end of the run."""
        if self.is_local:
            self.write_small(path, text)
            return
        uri = f"{self.root}/{path}"
        uploads.settle(uri)
        self.ahead.files.pop(uri, None)
        objects, name = objects_of(uri, self.options)
        uploads.later(uri, lambda: objects.write(name, text.encode()))

    def remove(self, uri: str) -> None:
        """Deletes a folder; does nothing if it is gone. Atomic on a local disk: a process that is killed meanwhile
        leaves scratch files, which vacuum removes."""
        if not self.is_local:
            self.ahead.folders.pop(os.path.dirname(uri), None)
            objects, folder = objects_of(uri, self.options)
            objects.delete([f"{folder}/{name}" for name in objects.below(folder)])
            return
        filesystem, path = self.filesystem(uri)
        if filesystem.get_file_info(path).type == pafs.FileType.Directory:
            reached("folder: before removal")
            if not uri.startswith(f"{self.root}/scratch/"):
                path = self._moved_away(filesystem, path)
                reached("folder: moved away")
            filesystem.delete_dir(path)

    def _moved_away(self, filesystem: pafs.FileSystem, path: str) -> str:
        _, aside = self.filesystem(self.scratch("removed"))
        make_folder(filesystem, os.path.dirname(aside))
        try:
            filesystem.move(path, aside)
        except OSError:  # the folder is on another disk
            return path
        return aside

    def require_writable(self) -> None:
        """Raises StateError unless a file can be written under the root."""
        try:
            filesystem, path = self.filesystem(self.root)
            make_folder(filesystem, path)
            # In object storage the file stays: removing it would take as many requests again.
            probe = f"{path}/.writable-{uuid.uuid4().hex}" if self.is_local else f"{path}/.writable"
            with filesystem.open_output_stream(probe) as out:
                out.write(b"")
            if self.is_local:
                filesystem.delete_file(probe)
        except OSError as error:
            raise self.not_writable(error) from error

    def not_writable(self, error: OSError) -> StateError:
        """What tells that nothing can be written under the root."""
        return StateError(
            f"state_root {self.root} cannot be written: {error}",
            "Give a folder that this user may write, as `state_root` in the profile; for object storage also "
            "`storage_options`.",
        )


@dataclass(frozen=True)
class CollectionStore:
    """Where one collection is stored. Stateless: each call reads what is stored now."""

    storage: Storage
    name: str

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return _folder_of(self.name)

    @property
    def uri(self) -> str:
        """The URI of its folder."""
        return f"{self.storage.root}/collections/{self.folder}"

    @property
    def trace_uri(self) -> str:
        """The URI of the Delta table of its updates."""
        return f"{self.uri}/trace"

    def log(self) -> Log | None:
        """The newest version of its log; None if it has never been stored. Raises StateError if it is damaged."""
        storage, uri = self.storage, self.trace_uri
        storage.note_log(uri, self.name)
        return log_loader.load(self.name, uri, storage.options, storage.checked, storage.copies_of(uri))

    def log_at(self, version: int) -> Log:
        """An earlier version of its log. Raises StateError if it is gone."""
        storage, uri = self.storage, self.trace_uri
        storage.note_log(uri, self.name)
        copies = storage.copies_of(uri)
        return log_loader.load_version(self.name, uri, version, storage.options, storage.checked, copies)

    def create(self, schema: Schema) -> Log:
        """Its log, created empty if there is none. ``schema`` includes ``dd_time`` and ``dd_diff``."""
        uri, found = self.trace_uri, self.log()
        if found is not None:
            return found
        self.storage.ahead.folders.pop(os.path.dirname(self.uri), None)
        return log_loader.create(self.name, uri, schema, self.storage.options, self.storage.copies_of(uri))

    def remove(self) -> None:
        """Deletes everything stored of it."""
        self.storage.remove(self.uri)

    def inner(self, node: str) -> CollectionStore:
        """The store of an operator's state."""
        return InnerPlace(self.storage, f"{self.name}#{node}", self.uri, node)

    def arrangement(self, column: str) -> CollectionStore:
        """The store of its arrangement by a column."""
        mark = hashlib.sha256(column.encode()).hexdigest()[:12]
        return self.inner(f"{ARRANGEMENT}{re.sub('[^a-z0-9_]', '', column.lower())[:40]}.{mark}")

    def arrangements(self) -> tuple[CollectionStore, ...]:
        """The stores of all arrangements that it has, by name."""
        names = sorted(self.storage.names_in(f"{self.uri}/inner"))
        return tuple(self.inner(name) for name in names if is_arrangement(name))

    def read_manifest(self, number: int | None) -> Manifest | None:
        """The manifest of that number; None if ``number`` is None. Raises StateError if it is missing, damaged or of
        another format."""
        if number is None:
            return None
        path = f"{self.uri}/manifests/{number}.json"
        try:
            entries = json.loads(self.storage.read_unchanging(path))
            manifest = Manifest.from_json(entries)
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise StateError(
                f"the manifest of {self.name} at {path} cannot be read: {error}",
                f"Rebuild it with `dbt run --full-refresh --select {self.name.split('.')[-1]}`.",
            ) from error
        if entries.get("format") != FORMAT_VERSION:
            raise StateError(
                f"{self.name} was stored in format {entries.get('format')}, this version reads {FORMAT_VERSION}",
                "Use the version that wrote it, or rebuild it with `dbt run --full-refresh`.",
            )
        return manifest

    def write_manifest(self, manifest: Manifest) -> int:
        """Stores a manifest and returns its number. It takes effect when a commit names it."""
        number = time.time_ns()
        reached("manifest: before")
        path, text = f"{self.uri}/manifests/{number}.json", json.dumps(manifest.to_json(), sort_keys=True)
        if self.storage.is_local:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(text.encode())
            durable.note(path)
        else:
            objects, name = objects_of(path, self.storage.options)
            uploads.later(path, lambda: objects.write(name, text.encode()))
            copy = self.storage.copies_of(path)
            if copy is not None:
                checked_file.write(copy, text.encode())
        reached("manifest: written")
        return number


def is_arrangement(node: str) -> bool:
    """Whether a folder among a collection's states is an arrangement's. Former versions stored them for each model."""
    return node.startswith(ARRANGEMENT)


@dataclass(frozen=True)
class InnerPlace(CollectionStore):
    """Where an operator's state is stored, beside its model's trace."""

    parent_uri: str
    node: str

    @property
    def uri(self) -> str:
        return f"{self.parent_uri}/inner/{_folder_of(self.node)}"

    @property
    def trace_uri(self) -> str:
        return self.uri


def open_storage(root: str, options: Mapping[str, str], thresholds: Thresholds | None = None) -> Storage:
    """The state root with delta-rs's options. Raises ConfigError if commits would not be safe with them."""
    require_safe(root, options)
    return Storage(root, dict(options), thresholds or Thresholds())
