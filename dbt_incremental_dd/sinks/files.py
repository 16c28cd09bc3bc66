"""A collection's changes as files by time, in a folder or in object storage, each change once.

    <folder>/date=2024-05-01/hour=13/<time>.parquet    what one time has changed: the columns, dd_time (ms), dd_diff
    <folder>/_dbt_dd_progress.json                     up to when the files are written

The first file has all rows that there were. A file's name follows from its time, in UTC, and its rows from the
collection. So a file that is written a second time, by a publisher that goes on after another one, is the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as pafs

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.errors import ConfigError, FrontierError, SinkError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.sinks.following import follow, resumed
from dbt_incremental_dd.sinks.wanted import Wanted
from dbt_incremental_dd.storage import durable
from dbt_incremental_dd.storage.filesystems import filesystem_of, make_folder
from dbt_incremental_dd.storage.uris import is_remote
from dbt_incremental_dd.subscribe.json_values import json_rows
from dbt_incremental_dd.subscribe.subscription import Batch, Start, Subscription

FORMATS = ("parquet", "json")
PROGRESS = "_dbt_dd_progress.json"


@dataclass(frozen=True)
class Sink:
    """``folder``: a path or a URI. ``format``: ``parquet``, or ``json``: an object in each line. ``options``: of the
    object storage, as ``storage_options`` of a profile has them."""

    folder: str
    format: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


def sink_of(wanted: Wanted) -> Sink:
    """Raises ConfigError for settings that mean nothing to it."""
    wanted.require_only("files", "format", "options")
    found = Sink(wanted.target.rstrip("/"), wanted.format or "parquet", wanted.options)
    if found.format not in FORMATS:
        raise ConfigError(f"files are of the format {found.format!r}", f"It may be {' or '.join(FORMATS)}.")
    return found


def publish(collection: Collection, sink: Sink, *, once: bool = False, ended: Event | None = None) -> None:
    """Writes the rows, and then a file for each time that changes any, until ``ended``, or with ``once`` up to now;
    goes on from where the folder is.

    Raises SinkError where the folder has other files, cannot be written, or lacks history that is gone.
    """
    try:
        publisher = _Publisher(collection, sink)
        follow(publisher.subscription(), publisher.write, once=once, ended=ended)
    except OSError as error:
        raise SinkError(
            f"{collection.name} cannot be published to {sink.folder}: {error}",
            "Check that this user may write there. Start it again: it goes on where it was.",
        ) from error


@dataclass(frozen=True)
class _Progress:
    """``began``: the time of the first rows; ``at``: up to when there are files, None until the first one is there."""

    collection: str
    began: Time
    at: Time | None


class _Publisher:
    def __init__(self, collection: Collection, sink: Sink) -> None:
        self._collection = collection
        self._sink = sink
        self._filesystem, self._folder = filesystem_of(sink.folder, sink.options)
        make_folder(self._filesystem, self._folder)

    def subscription(self) -> Subscription:
        """One that goes on where the folder is."""
        progress = self._progress()
        name = f"files {self._sink.folder}"
        if progress is not None and progress.at is not None:
            try:
                return resumed(self._collection, name, progress.at)
            except FrontierError as error:
                raise SinkError(
                    f"{self._collection.name} has no history any more since the last file in {self._sink.folder}: "
                    f"{error.message}",
                    "Publish to another folder, which then begins with all rows.",
                ) from error
        if progress is not None:  # the first file may be there, and is of a time that may be readable no more
            self._remove(self._path(progress.began))
        began = self._collection.frontiers.last
        self._keep(_Progress(self._collection.name, began, None))
        return Subscription(self._collection.place, Start(as_of=began), name=name)

    def write(self, batch: Batch) -> None:
        """A file for each time, and then how far they go."""
        is_first = batch.after is None
        for one in batch.times():
            if one.updates.num_rows or is_first:
                self._write(self._path(one.timestamp), self._encoded(one.updates))
                is_first = False
            reached("publish: sent")
        self._keep(_Progress(self._collection.name, batch.timestamp, batch.timestamp))
        reached("publish: committed")

    def _path(self, t: Time) -> str:
        at = datetime.fromtimestamp(t / 1000, UTC)
        return f"date={at:%Y-%m-%d}/hour={at:%H}/{t}.{self._sink.format}"

    def _encoded(self, updates: pa.Table) -> bytes:
        if self._sink.format == "parquet":
            out = pa.BufferOutputStream()
            pq.write_table(updates, out, compression="zstd")
            return bytes(out.getvalue())
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in json_rows(updates)).encode()

    def _write(self, path: str, data: bytes) -> None:
        """Nobody sees a part of the file: an object is visible once it is whole, and a file once it has its name."""
        whole = f"{self._folder}/{path}"
        folder, _, name = whole.rpartition("/")
        make_folder(self._filesystem, folder)
        is_local = not is_remote(self._sink.folder)
        written = f"{folder}/.{name}.part" if is_local else whole
        with self._filesystem.open_output_stream(written) as out:
            out.write(data)
        if is_local:
            durable.sync_file(written)
            self._filesystem.move(written, whole)
            durable.sync_folder(folder)

    def _remove(self, path: str) -> None:
        whole = f"{self._folder}/{path}"
        if self._filesystem.get_file_info(whole).type == pafs.FileType.File:
            self._filesystem.delete_file(whole)

    def _progress(self) -> _Progress | None:
        """Raises SinkError for a folder of something else."""
        path = f"{self._folder}/{PROGRESS}"
        if self._filesystem.get_file_info(path).type == pafs.FileType.NotFound:
            found = self._filesystem.get_file_info(pafs.FileSelector(self._folder, allow_not_found=True))
            if found:
                raise SinkError(
                    f"{self._sink.folder} has files, and {self._collection.name} was never published to it",
                    "Name another folder, or empty this one.",
                )
            return None
        with self._filesystem.open_input_stream(path) as stream:
            text = stream.read().decode()
        try:
            found = _Progress(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise SinkError(
                f"{self._sink.folder}/{PROGRESS} is damaged: {error}", "Publish to another folder."
            ) from error
        if found.collection != self._collection.name:
            raise SinkError(
                f"{self._sink.folder} has the changes of {found.collection}, not of {self._collection.name}",
                "Name another folder.",
            )
        return found

    def _keep(self, progress: _Progress) -> None:
        told = {"collection": progress.collection, "began": progress.began, "at": progress.at}
        self._write(PROGRESS, json.dumps(told).encode())
