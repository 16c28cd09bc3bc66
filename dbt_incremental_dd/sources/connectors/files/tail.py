"""One file of lines that grows as a source: read from where it was left.

Progress is how many of its bytes have been read, and a hash of its beginning, by which a replaced file is noticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, BinaryIO

from pyarrow import fs as pafs
from pyspark.sql import functions as F

from dbt_incremental_dd.core.errors import ConfigError, SourceError
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.sources.connectors.files.columns import first_columns
from dbt_incremental_dd.sources.connectors.files.encoding import copied, encoding_of, in_utf8, keeps_lines
from dbt_incremental_dd.sources.connectors.files.reader import FilesToRead, parsed, read
from dbt_incremental_dd.sources.connectors.files.spec import FilesSpec
from dbt_incremental_dd.sources.formats import json_lines
from dbt_incremental_dd.sources.formats.limits import MOST_BYTES
from dbt_incremental_dd.sources.formats.options import is_set, option
from dbt_incremental_dd.sources.poll_result import PollResult
from dbt_incremental_dd.sources.records import FILE, in_spark, on_driver
from dbt_incremental_dd.storage.filesystems import make_folder
from dbt_incremental_dd.storage.uris import spark_uri
from dbt_incremental_dd.trace.layout import Storage

_PREFIX = 4096
"""Bytes of the file's beginning that are remembered."""
_BLOCK = 1 << 24
"""Bytes that are held at a time."""


def poll(
    workspace: Workspace,
    spec: FilesSpec,
    filesystem: pafs.FileSystem,
    info: pafs.FileInfo,
    progress: Mapping[str, Any],
    stored: Schema | None,
    *,
    is_anew: bool,
) -> PollResult | None:
    """The whole lines that have been appended since, or ``is_anew`` all, copied aside so that what is read does not
    move. Raises ConfigError for options with which lines are no records."""
    storage, encoding = workspace.storage, _checked_encoding(spec)
    offset = int(progress.get("offset", 0))
    with filesystem.open_input_file(info.path) as file:
        if info.size < offset or (offset and _hash(file, offset) != progress.get("prefix")):
            raise SourceError(
                f"source {spec.name}: file {spec.path} was replaced or cut after {offset} bytes of it had been read",
                "A growing file may only be appended to. Give the new file a name of its own.",
            )
        offset = 0 if is_anew else offset
        end = _end_of_lines(file, offset, info.size)
        if end == offset and stored is not None:
            return None
        header = b""
        if offset and spec.format == "csv" and is_set(spec.options, "header"):
            header = _first_line(file)
        columns = first_columns(workspace.session, spec, filesystem, ()) if stored is None else stored
        few = _few(workspace, spec, file, header, start=offset, end=end, columns=columns)
        if few is not None:
            return PollResult(few, {"offset": end, "prefix": _hash(file, end)})
        scratch = storage.scratch("tail")
        lines = _copy(storage, f"{scratch}/tail.txt", header, file=file, start=offset, end=end)
        prefix = _hash(file, end)
        plain = spec.format == "json" and not spec.options and _is_plain(file, offset, end)
    folders = [scratch]
    if encoding is not None:
        source, folder = storage.filesystem(scratch)
        folders.append(
            copied(storage, spec, source, root=folder, names=["tail.txt"], encoding=encoding, told=str(spec.path))
        )
    uris = [spark_uri(f"{folders[-1]}/tail.txt")] if end > offset else []
    shown, aside = F.lit(spec.path), storage.scratch("aside")
    found = FilesToRead(uris, shown=lambda name: shown, aside=aside, is_plain=plain)
    frame = read(workspace, in_utf8(spec), found, stored).drop(FILE)
    records = in_spark(workspace, frame, lines)
    return PollResult(records, {"offset": end, "prefix": prefix}, scratch=(*folders, found.aside))


def _checked_encoding(spec: FilesSpec) -> str | None:
    """The encoding that is not UTF-8. Raises ConfigError for options with which a line's end is no record's end."""
    encoding = encoding_of(spec)
    line_end = option(spec.options, "lineSep", "\n")
    wrong = None
    if is_set(spec.options, "multiLine"):
        wrong = "multiLine"
    elif line_end != "\n":
        wrong = "lineSep"
    elif encoding is not None and not keeps_lines(encoding):
        wrong = f"encoding {encoding}"
    if wrong is not None:
        raise ConfigError(
            f"source {spec.name}: {spec.path} is one growing file, which is read line by line; with options.{wrong} "
            "a line is no record",
            "Leave the option out, or write whole files into a folder and give that as the path.",
        )
    return encoding


def _few(
    workspace: Workspace, spec: FilesSpec, file: BinaryIO, header: bytes, start: int, end: int, columns: Schema | None
) -> Relation | None:
    """The lines' records, without a Spark job; None where that might not be what Spark reads."""
    if columns is None or not workspace.thresholds.taken_rows or end - start > workspace.most(MOST_BYTES):
        return None
    file.seek(start)
    table = parsed(workspace, spec, header + file.read(end - start), columns)
    return None if table is None else on_driver(workspace, table, columns)


def _is_plain(file: BinaryIO, start: int, end: int) -> bool:
    """Whether the driver has found these lines to be plain: then Spark need not look through them."""
    if end - start > MOST_BYTES:
        return False
    file.seek(start)
    return json_lines.is_plain(file.read(end - start))


def _first_line(file: BinaryIO) -> bytes:
    """The file's first line, with its end."""
    file.seek(0)
    line = b""
    while b"\n" not in line and (block := file.read(_PREFIX)):
        line += block
    return line.partition(b"\n")[0] + b"\n"


def _hash(file: BinaryIO, read_so_far: int) -> str:
    file.seek(0)
    return hashlib.sha256(file.read(min(_PREFIX, read_so_far))).hexdigest()


def _end_of_lines(file: BinaryIO, start: int, size: int) -> int:
    """The position behind the last line's end; ``start`` where there is none after it."""
    stop = size
    while stop > start:
        begin = max(start, stop - _BLOCK)
        file.seek(begin)
        found = file.read(stop - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        stop = begin
    return start


def _copy(storage: Storage, uri: str, header: bytes, file: BinaryIO, start: int, end: int) -> int:
    """Copies a part of the file; the number of its lines."""
    filesystem, path = storage.filesystem(uri)
    make_folder(filesystem, path.rsplit("/", 1)[0])
    lines = 0
    with filesystem.open_output_stream(path) as out:
        out.write(header)
        file.seek(start)
        while start < end:
            block = file.read(min(_BLOCK, end - start))
            out.write(block)
            lines += block.count(b"\n")
            start += len(block)
    return lines
