"""The layout of ``state_root``, and access to the collections in it.

    <state_root>/collections/<name>/trace/             Delta table: the collection's updates
    <state_root>/collections/<name>/trace/newest       the latest version of its log
    <state_root>/collections/<name>/manifests/<n>.json the manifest that a commit names by n
    <state_root>/collections/<name>/inner/<node>/      Delta table: an operator's arrangement or accumulators
    <state_root>/collections/<name>/inner/by.<column>.<mark>/   Delta table: its updates, arranged by another column
    <state_root>/collections/<name>/live/<n>/          hard links to the trace's files, which the relations read
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
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from pyarrow import fs as pafs

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.manifest import FORMAT_VERSION, Manifest
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.storage import durable
from dbt_incremental_dd.storage.object_store import filesystem_of, is_remote, make_folder, require_safe
from dbt_incremental_dd.trace.log import Log

_ARRANGEMENT = "by."
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

    def collection(self, name: str) -> CollectionStore:
        """The store of the collection called ``name`` (``schema.identifier``, case-insensitive)."""
        return CollectionStore(self, name.lower())

    def collections(self) -> tuple[CollectionStore, ...]:
        """The stores of all collections, by name."""
        filesystem, path = self.filesystem(f"{self.root}/collections")
        selector = pafs.FileSelector(path, allow_not_found=True)
        found = [_name_of(info.base_name) for info in filesystem.get_file_info(selector)]
        return tuple(CollectionStore(self, name) for name in sorted(found))

    def filesystem(self, uri: str) -> tuple[pafs.FileSystem, str]:
        """pyarrow's file system for a URI under the root, and the path within it."""
        return filesystem_of(uri, self.options)

    @property
    def is_local(self) -> bool:
        """Whether the root is on a local disk, where files can be renamed."""
        return not is_remote(self.root)

    def scratch(self, label: str) -> str:
        """A new path for a running job's files."""
        return f"{self.root}/scratch/{label}-{os.getpid()}-{time.time_ns()}"

    def read_small(self, path: str) -> str | None:
        """The text of a small file under the root; None if it does not exist."""
        filesystem, full = self.filesystem(f"{self.root}/{path}")
        try:
            with filesystem.open_input_stream(full) as stream:
                return bytes(stream.read()).decode()
        except FileNotFoundError:
            return None

    def write_small(self, path: str, text: str) -> None:
        """Replaces a small file under the root atomically."""
        filesystem, full = self.filesystem(f"{self.root}/{path}")
        folder, name = full.rsplit("/", 1)
        make_folder(filesystem, folder)
        # An object becomes visible when it is complete.
        made = f"{folder}/.{name}-{uuid.uuid4().hex}" if self.is_local else full
        with filesystem.open_output_stream(made) as out:
            out.write(text.encode())
        reached("small file: written")
        if made != full:
            if durable.enabled:
                durable.sync_file(made)
            filesystem.move(made, full)
            if durable.enabled:
                durable.sync_folder(folder)
        reached("small file: replaced")

    def remove(self, uri: str) -> None:
        """Deletes a folder; does nothing if it is gone. Atomic on a local disk: a process that is killed meanwhile
        leaves scratch files, which vacuum removes."""
        filesystem, path = self.filesystem(uri)
        if filesystem.get_file_info(path).type == pafs.FileType.Directory:
            reached("folder: before removal")
            if self.is_local and not uri.startswith(f"{self.root}/scratch/"):
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
            raise StateError(
                f"state_root {self.root} cannot be written: {error}",
                "Give a folder that this user may write, as `state_root` in the profile; for object storage also "
                "`storage_options`.",
            ) from error


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
        return Log.load(self.name, self.trace_uri, self.storage.options)

    def log_at(self, version: int) -> Log:
        """An earlier version of its log. Raises StateError if it is gone."""
        return Log.load_version(self.name, self.trace_uri, version, self.storage.options)

    def create(self, schema: Schema) -> Log:
        """Its log, created empty if there is none. ``schema`` includes ``dd_time`` and ``dd_diff``."""
        return self.log() or Log.create(self.name, self.trace_uri, schema, self.storage.options)

    def remove(self) -> None:
        """Deletes everything stored of it."""
        self.storage.remove(self.uri)

    def inner(self, node: str) -> CollectionStore:
        """The store of an operator's state."""
        return InnerPlace(self.storage, f"{self.name}#{node}", self.uri, node)

    def arrangement(self, column: str) -> CollectionStore:
        """The store of its arrangement by a column."""
        mark = hashlib.sha256(column.encode()).hexdigest()[:12]
        return self.inner(f"{_ARRANGEMENT}{re.sub('[^a-z0-9_]', '', column.lower())[:40]}.{mark}")

    def arrangements(self) -> tuple[CollectionStore, ...]:
        """The stores of all arrangements that it has, by name."""
        filesystem, path = self.storage.filesystem(f"{self.uri}/inner")
        found = filesystem.get_file_info(pafs.FileSelector(path, allow_not_found=True))
        names = sorted(info.base_name for info in found)
        return tuple(self.inner(name) for name in names if is_arrangement(name))

    def read_manifest(self, number: int | None) -> Manifest | None:
        """The manifest of that number; None if ``number`` is None. Raises StateError if it is missing, damaged or of
        another format."""
        if number is None:
            return None
        filesystem, path = self.storage.filesystem(f"{self.uri}/manifests/{number}.json")
        try:
            with filesystem.open_input_stream(path) as stream:
                entries = json.loads(stream.read())
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
        filesystem, path = self.storage.filesystem(f"{self.uri}/manifests")
        make_folder(filesystem, path)
        with filesystem.open_output_stream(f"{path}/{number}.json") as out:
            out.write(json.dumps(manifest.to_json(), sort_keys=True).encode())
        durable.note(f"{self.uri}/manifests/{number}.json")
        reached("manifest: written")
        return number


def is_arrangement(node: str) -> bool:
    """Whether a folder among a collection's states is an arrangement's. Former versions stored them for each model."""
    return node.startswith(_ARRANGEMENT)


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
