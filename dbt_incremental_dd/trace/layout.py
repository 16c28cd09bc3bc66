"""The layout of ``state_root``, and access to the collections in it.

    <state_root>/collections/<name>/trace/             Delta table: the collection's updates
    <state_root>/collections/<name>/trace/newest       the latest version of its log
    <state_root>/collections/<name>/manifests/<n>.json the manifest that a commit names by n
    <state_root>/collections/<name>/inner/<node>/      Delta table: an operator's arrangement or accumulators
    <state_root>/collections/<name>/inner/by.<column>.<mark>/   Delta table: its updates, arranged by another column
    <state_root>/collections/<name>/live/<n>/          links to the trace's files, or copies, which the relations read
    <state_root>/collections/<name>/plan-<key>.json    a model's compiled plan, signed with the key of that id
    <state_root>/collections/<name>/shown.json         how the relations show the trace
    <state_root>/collections/<name>/table/             the open table of its present rows, if it has one
    <state_root>/collections/<name>/table.json         up to when the table is written
    <state_root>/collections/<name>/inbox/             events that were sent to a source, with inbox.json beside it
    <state_root>/seeds/<name>/data/                    rows of a seed, of which a session makes its table
    <state_root>/seeds.json                            how seeds were loaded, with their tables' files
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
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from dbt_incremental_dd.core.errors import DifferentialError, StateError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.manifest import FORMAT_VERSION, Manifest
from dbt_incremental_dd.core.own import is_own
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.storage import checked_file, durable, uploads
from dbt_incremental_dd.storage.objects import objects_of
from dbt_incremental_dd.storage.uris import require_safe
from dbt_incremental_dd.trace import log_loader
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.log import ARRANGEMENT, Log
from dbt_incremental_dd.trace.log_cache import Checked
from dbt_incremental_dd.trace.state_root import StateRoot

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


def name_of(folder: str) -> str:
    """The name of the collection in a folder below ``collections``."""
    return unquote(folder.replace("~", "%"))


@dataclass(frozen=True)
class Storage(StateRoot):
    """A state root, and the collections in it."""

    def collection(self, name: str) -> CollectionStore:
        """The store of the collection called ``name`` (``schema.identifier``, case-insensitive)."""
        return CollectionStore(self, name.lower())

    def collections(self, *, own: bool = False) -> tuple[CollectionStore, ...]:
        """The stores of all collections, by name. ``own``: also the engine's own, which tell of runs."""
        found = map(name_of, self.list_names(f"{self.root}/collections"))
        return tuple(CollectionStore(self, name) for name in sorted(found) if own or not is_own(name))

    def for_run(self) -> Storage:
        """The same for one run. In object storage it asks at once for what former runs have asked for one by one."""
        asked = self.asked
        if asked is None:
            return self
        with suppress(OSError, DifferentialError):  # of another run, which has told it
            uploads.settle(self.root)
        checked = Checked()

        def load(name: str, uri: str) -> Log | None:
            return log_loader.load(name, uri, self.options, checked, self.copies_of(uri))

        return replace(self, checked=checked, ahead=asked.again(load, self.read_bytes, self.list_names))


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

    @property
    def table_uri(self) -> str:
        """The URI of its open table."""
        return f"{self.uri}/table"

    def log(self) -> Log | None:
        """The newest version of its log; None if it has never been stored. Raises StateError if it is damaged."""
        storage, uri = self.storage, self.trace_uri
        if not is_own(self.name):  # runs that change nothing do not need them
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

    def create_anew(self, schema: Schema) -> Log:
        """Its log without files, also if there is one: nothing refers to its latest version."""
        found = self.log()
        if found is None:
            return self.create(schema)
        return found.commit(Commit(manifest=time.time_ns(), schema=schema, replace_all=True))

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
