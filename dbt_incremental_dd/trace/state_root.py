"""A state root on a local disk or in object storage: what is written and read there besides logs and data files."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyarrow import fs as pafs

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.storage import checked_file, durable, uploads
from dbt_incremental_dd.storage.filesystems import filesystem_of, make_folder
from dbt_incremental_dd.storage.mirror import Mirror, mirror_of
from dbt_incremental_dd.storage.objects import objects_of
from dbt_incremental_dd.storage.uris import is_remote
from dbt_incremental_dd.trace.log_cache import Checked
from dbt_incremental_dd.trace.look_ahead import Ahead, Asked, asked_below


@dataclass(frozen=True)
class StateRoot:
    """A state root: a local folder or a URI, with delta-rs's options for it. Its small files, and its folders."""

    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Contains credentials, so it is excluded from ``repr``."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    """Limits of what is brought from there to the driver."""
    checked: Checked | None = field(default=None, compare=False, repr=False)
    """Within a run on object storage: the logs that it has looked at."""
    ahead: Ahead = field(default_factory=Ahead, compare=False, repr=False)
    """Within a run on object storage: what it has asked for at once, as it began."""

    def filesystem(self, uri: str) -> tuple[pafs.FileSystem, str]:
        """pyarrow's file system for a URI under the root, and the path within it."""
        return filesystem_of(uri, self.options)

    @property
    def is_local(self) -> bool:
        """Whether the root is on a local disk, where files can be renamed."""
        return not is_remote(self.root)

    def names_in(self, uri: str) -> tuple[str, ...]:
        """The names of the files and folders in a folder; none if there is no such folder."""
        asked = self.asked
        if asked is not None:
            asked.folder(uri)
        found = self.ahead.folders.get(uri)
        return self.list_names(uri) if found is None else found

    def list_names(self, uri: str) -> tuple[str, ...]:
        """The same names, listed now."""
        filesystem, path = self.filesystem(uri)
        return tuple(one.base_name for one in filesystem.get_file_info(pafs.FileSelector(path, allow_not_found=True)))

    @property
    def asked(self) -> Asked | None:
        """What runs have asked for; None on a local disk, or where nothing is copied."""
        mirror = self.mirror
        return None if mirror is None else asked_below(f"{mirror.folder_of(self.root)}/asked.json")

    def note_log(self, uri: str, name: str) -> None:
        """A run asks for the log."""
        asked = self.asked
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
        asked = self.asked
        if asked is not None:
            asked.file(uri)
        if uri in self.ahead.files:
            found = self.ahead.files.pop(uri)
            return None if found is None else found.decode()
        uploads.settle(uri)
        try:
            return self.read_bytes(uri).decode()
        except FileNotFoundError:
            return None

    def write_small(self, path: str, text: str) -> None:
        """Replaces a small file under the root atomically."""
        if not self.is_local:  # an object becomes visible when it is complete
            self._write_object(path)(text)  # by this thread: no other one may be started while Python ends
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
        write = self._write_object(path)
        uploads.later(f"{self.root}/{path}", lambda: write(text))

    def _write_object(self, path: str) -> Callable[[str], None]:
        """What replaces a small file in object storage, where no other replacement of it is under way any more."""
        uri = f"{self.root}/{path}"
        uploads.settle(uri)
        self.ahead.files.pop(uri, None)
        objects, name = objects_of(uri, self.options)
        return lambda text: objects.write(name, text.encode())

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
