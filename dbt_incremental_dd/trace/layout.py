"""Where things lie under ``state_root``, and the collections found there.

    <state_root>/collections/<name>/trace/             Delta table: the collection's updates
    <state_root>/collections/<name>/trace/newest       the version that its log has come to
    <state_root>/collections/<name>/manifests/<n>.json what the commit with manifest n belongs to
    <state_root>/collections/<name>/inner/<node>/      Delta table: an operator's arrangement or accumulators
    <state_root>/collections/<name>/live/<n>/          hard links to the trace's files, which the relations read
    <state_root>/collections/<name>/plan-<key>.json    a model's compiled plan, signed with the key of that id
    <state_root>/collections/<name>/shown.json         how the relations show the trace
    <state_root>/locks/<name>                          locked by the process that writes the collection
    <state_root>/scratch/                              files of running jobs

Any relation name is one folder: characters that not all file systems and URLs take are written ``~2F``.
"""

from __future__ import annotations

import json
import os
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
from dbt_incremental_dd.storage import durable
from dbt_incremental_dd.storage.object_store import filesystem_of, is_remote, make_folder, require_safe
from dbt_incremental_dd.trace.log import Log

DEFAULT_ROOT = ".dbt_incremental_dd"
"""The state root of a project that names none."""


def state_root_of(text: str, folder: str) -> str:
    """A state root as it is written, as an absolute path or a URI; what is relative is below ``folder``."""
    if "://" in text:
        return text.rstrip("/")
    return os.path.normpath(os.path.join(folder, os.path.expanduser(text)))


def _folder_of(name: str) -> str:
    """Percent signs would be taken for URLs' own by some of the readers; dots alone would be another folder."""
    folder = quote(name, safe=".-_").replace("~", "%7E").replace("%", "~")
    return folder.replace(".", "~2E") if not folder.strip(".") else folder


def _name_of(folder: str) -> str:
    return unquote(folder.replace("~", "%"))


@dataclass(frozen=True)
class Storage:
    """A state root: a local folder or a URI, with the options that delta-rs takes for it."""

    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Credentials are among them, so they are not shown."""

    def collection(self, name: str) -> CollectionStore:
        """The place of the collection called ``name`` (``schema.identifier``, lower case)."""
        return CollectionStore(self, name.lower())

    def collections(self) -> tuple[CollectionStore, ...]:
        """All collections that have been stored, by name."""
        filesystem, path = self.filesystem(f"{self.root}/collections")
        selector = pafs.FileSelector(path, allow_not_found=True)
        found = [_name_of(info.base_name) for info in filesystem.get_file_info(selector)]
        return tuple(CollectionStore(self, name) for name in sorted(found))

    def filesystem(self, uri: str) -> tuple[pafs.FileSystem, str]:
        """pyarrow's file system for a path under the root, and the path in its terms."""
        return filesystem_of(uri, self.options)

    @property
    def is_local(self) -> bool:
        """Whether files can be renamed and listed as on a local disk."""
        return not is_remote(self.root)

    def scratch(self, label: str) -> str:
        """A new path for a running job's files."""
        return f"{self.root}/scratch/{label}-{os.getpid()}-{time.time_ns()}"

    def read_small(self, path: str) -> str | None:
        """The text of a small file under the root; None if there is none."""
        filesystem, full = self.filesystem(f"{self.root}/{path}")
        try:
            with filesystem.open_input_stream(full) as stream:
                return bytes(stream.read()).decode()
        except FileNotFoundError:
            return None

    def write_small(self, path: str, text: str) -> None:
        """Replaces a small file under the root, at once."""
        filesystem, full = self.filesystem(f"{self.root}/{path}")
        folder, name = full.rsplit("/", 1)
        make_folder(filesystem, folder)
        # Elsewhere a file shows when it is whole.
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
        """Deletes a folder; quietly if it is gone already. On a local disk it is gone at once: a process that is ended
        in the middle leaves scratch files, which vacuum removes."""
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
        except OSError:  # another disk is mounted there
            return path
        return aside

    def require_writable(self) -> None:
        """Raises StateError unless a file can be written under the root."""
        try:
            filesystem, path = self.filesystem(self.root)
            make_folder(filesystem, path)
            # Elsewhere it stays: to remove it would take as many requests again.
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
    """Where one collection lies. Holds nothing: each call reads what is stored now."""

    storage: Storage
    name: str

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return _folder_of(self.name)

    @property
    def uri(self) -> str:
        """The collection's folder."""
        return f"{self.storage.root}/collections/{self.folder}"

    @property
    def trace_uri(self) -> str:
        """The Delta table of its updates."""
        return f"{self.uri}/trace"

    def log(self) -> Log | None:
        """Its log's newest version, None if it has never been stored."""
        return Log.load(self.name, self.trace_uri, self.storage.options)

    def log_at(self, version: int) -> Log:
        """Its log as of an earlier version. Raises StateError if that is gone."""
        return Log.load_version(self.name, self.trace_uri, version, self.storage.options)

    def create(self, schema: Schema) -> Log:
        """Its log, made empty if there is none; ``schema`` includes ``dd_time`` and ``dd_diff``."""
        return self.log() or Log.create(self.name, self.trace_uri, schema, self.storage.options)

    def remove(self) -> None:
        """Deletes all that is stored of it."""
        self.storage.remove(self.uri)

    def inner(self, node: str) -> CollectionStore:
        """The place of an operator's own state."""
        return InnerPlace(self.storage, f"{self.name}#{node}", self.uri, node)

    def read_manifest(self, number: int | None) -> Manifest | None:
        """The manifest of that number; None if there is none. Raises StateError if it is damaged."""
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
        """Stores a manifest and returns its number; it counts once a commit names it."""
        number = time.time_ns()
        reached("manifest: before")
        filesystem, path = self.storage.filesystem(f"{self.uri}/manifests")
        make_folder(filesystem, path)
        with filesystem.open_output_stream(f"{path}/{number}.json") as out:
            out.write(json.dumps(manifest.to_json(), sort_keys=True).encode())
        durable.note(f"{self.uri}/manifests/{number}.json")
        reached("manifest: written")
        return number


@dataclass(frozen=True)
class InnerPlace(CollectionStore):
    """Where an operator's own state lies, beside the trace of its model."""

    parent_uri: str
    node: str

    @property
    def uri(self) -> str:
        return f"{self.parent_uri}/inner/{_folder_of(self.node)}"

    @property
    def trace_uri(self) -> str:
        return self.uri


def open_storage(root: str, options: Mapping[str, str]) -> Storage:
    """The state root, with delta-rs's options for it. Raises ConfigError for a store on which commits are not safe."""
    require_safe(root, options)
    return Storage(root, dict(options))
