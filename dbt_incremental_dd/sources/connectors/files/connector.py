"""Files as a source: a directory whose new files are read once, or one file of lines that grows (``tail``).

Progress is each file's size and modification time, and a digest of its bytes where that is cheap. Of a snapshot in
partitions only those whose files changed are read and compared.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from pyarrow import fs as pafs
from pyspark.sql import functions as F

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.sources.connectors.files import tail
from dbt_incremental_dd.sources.connectors.files.columns import first_columns
from dbt_incremental_dd.sources.connectors.files.encoding import copied, encoding_of, in_utf8
from dbt_incremental_dd.sources.connectors.files.listing import is_utf8, listing
from dbt_incremental_dd.sources.connectors.files.parquet_columns import columns_of, followed, require_stored
from dbt_incremental_dd.sources.connectors.files.pieces import in_pieces
from dbt_incremental_dd.sources.connectors.files.reader import FilesToRead, read, read_few
from dbt_incremental_dd.sources.connectors.files.spec import FilesSpec
from dbt_incremental_dd.sources.connectors.files.touched import (
    digests_of,
    kept_digests,
    unless_touched,
    updated_digests,
)
from dbt_incremental_dd.sources.formats.json_lines import is_plain
from dbt_incremental_dd.sources.formats.limits import MOST_BYTES
from dbt_incremental_dd.sources.partitions import Partition, changed_partitions, is_partitioned, partition_of
from dbt_incremental_dd.sources.paths import literal, poll_interval
from dbt_incremental_dd.sources.poll import PollRequest
from dbt_incremental_dd.sources.poll_result import PollResult
from dbt_incremental_dd.sources.records import in_spark, no_records
from dbt_incremental_dd.storage.uris import spark_uri
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression

__all__ = ["SPEC", "change_token", "poll", "poll_interval"]

SPEC = FilesSpec

_SPARKS_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
"""In a Parquet file, Spark's own form of its schema; of a user-defined type it may hold a pickled class."""
_SMALLEST_ROW = 20
"""Bytes; for guessing from a file's size how many records it has at most."""


def poll(request: PollRequest[FilesSpec]) -> PollResult | None:
    """What is new at the source's path; None where nothing is."""
    storage, spec, stored = request.storage, request.spec, request.stored
    is_anew = request.replaces is not None
    progress = request.progress if request.replaces is None else request.replaces
    assert spec.path is not None
    filesystem, path = storage.filesystem(spec.path)
    info = filesystem.get_file_info(path)
    if info.type == pafs.FileType.NotFound:
        raise SourceError(
            f"source {spec.name}: there is nothing at {spec.path}", "Check `path` in the source's settings."
        )
    whole = spec.envelope.is_whole
    kind = _kind(spec, info)
    if (stored is not None or is_anew) and not whole:
        _require_kind(spec, progress, kind)
    if kind == "growing file" and not whole:
        return tail.poll(
            request.workspace, spec, filesystem, info=info, progress=progress, stored=stored, is_anew=is_anew
        )
    root = path.rstrip("/") if info.type == pafs.FileType.Directory else path.rsplit("/", 1)[0]
    seen = {name.removeprefix(f"{root}/"): tuple(state) for name, state in progress.get("files", {}).items()}
    listed = listing(filesystem, info, root, seen)
    _require_names(spec, listed)
    known = kept_digests(progress)
    digests = digests_of(filesystem, root, spec.path, storage.options)
    found = unless_touched(digests, listed, seen, known)
    if found == seen and stored is not None:
        return None
    base = _base(spec, info, found)
    changed = changed_partitions(found, seen, stored) if base is not None and whole and not is_anew else None
    if changed is not None:
        new = sorted(name for name in found if partition_of(name) in changed)
    else:
        new = sorted(found) if whole else _new_files(spec, found, seen)
    if is_anew and not whole:
        _require_all(spec, found, seen)
        new = sorted(found)
    if not new and stored is not None and not whole:
        return None
    fresh = {f"{root}/{name}": partition_of(name) if base is not None else () for name in new}
    kept = listed if whole else {**seen, **listed}
    size = sum(found[name][0] for name in new)
    if spec.format == "parquet" and stored is not None:
        own = {name: columns_of(spec, filesystem, name) for name in fresh}
        if whole and not spec.columns and base is None:
            stored = followed(request, stored, own.values())
        require_stored(spec, own, fresh, stored)
    progress = {
        "files": {name: list(state) for name, state in kept.items()},
        "kind": kind,
        "digests": updated_digests(digests, kept, new, known),
    }
    columns = stored if stored is not None or base is not None else _first(request, filesystem, fresh)
    few = read_few(request.workspace, spec, filesystem, fresh, columns) if columns is not None and fresh else None
    within = None if changed is None else tuple(changed)
    if few is not None:
        return PollResult(few, progress, whole=whole, within=within)
    pieces = (
        in_pieces(request, filesystem, list(fresh), columns, size) if columns is not None and base is None else None
    )
    if pieces is not None and columns is not None:
        return PollResult(no_records(request.workspace, columns), progress, pieces=pieces)
    records, scratch = _records(request, filesystem, root, fresh=fresh, base=base, size=size)
    return PollResult(records, progress, whole=whole, within=within, scratch=scratch)


def _records(
    request: PollRequest[FilesSpec],
    filesystem: pafs.FileSystem,
    root: str,
    fresh: Mapping[str, Partition],
    base: str | None,
    size: int,
) -> tuple[Relation, tuple[str, ...]]:
    """The files' records in Spark, and folders that go once these are stored."""
    workspace, storage, spec, stored = request.workspace, request.storage, request.spec, request.stored
    estimate = _count(spec, filesystem, list(fresh), size)
    given = frozenset(key.lower() for partition in fresh.values() for key, _ in partition)
    encoding, aside = encoding_of(spec), storage.scratch("aside")
    if encoding is None or not fresh:
        plain = spec.format == "json" and size <= MOST_BYTES and _are_plain(spec, filesystem, fresh)
        found = FilesToRead([_uri(spec, name) for name in fresh], base, given, aside=aside, is_plain=plain)
        return in_spark(workspace, read(workspace, spec, found, stored), estimate), (aside,)
    names = [name.removeprefix(f"{root}/") for name in fresh]
    scratch = copied(storage, spec, filesystem, root=root, names=names, encoding=encoding)
    uris = [f"{spark_uri(scratch)}/{literal(name)}" for name in names]

    def shown(name: Expression) -> Expression:
        return F.replace(name, F.lit(scratch), F.lit(root))

    found = FilesToRead(uris, None if base is None else spark_uri(scratch), given, shown, aside)
    try:
        return in_spark(workspace, read(workspace, in_utf8(spec), found, stored), estimate), (scratch, aside)
    except BaseException:
        storage.remove(scratch)
        raise


def _first(
    request: PollRequest[FilesSpec], filesystem: pafs.FileSystem, fresh: Mapping[str, Partition]
) -> Schema | None:
    return first_columns(request.workspace.session, request.spec, filesystem, fresh)


def _are_plain(spec: FilesSpec, filesystem: pafs.FileSystem, names: Iterable[str]) -> bool:
    """Whether the driver has found the files' lines to be plain: then Spark need not look through them."""
    if spec.options:
        return False
    for name in names:
        try:
            with filesystem.open_input_stream(name) as stream:
                if not is_plain(stream.read(MOST_BYTES + 1)):
                    return False
        except OSError:  # Spark says what is wrong with it
            return False
    return True


def change_token(storage: Storage, spec: FilesSpec) -> Hashable:
    """The files' sizes and times."""
    filesystem, path = storage.filesystem(str(spec.path))
    info = filesystem.get_file_info(path)
    if info.type == pafs.FileType.Directory:
        return frozenset(listing(filesystem, info, info.path).items())
    return info.size, info.mtime_ns


def _kind(spec: FilesSpec, info: pafs.FileInfo) -> str:
    """What is at the path."""
    if info.type == pafs.FileType.Directory:
        return "folder"
    return "file" if spec.format == "parquet" else "growing file"


def _require_kind(spec: FilesSpec, progress: Mapping[str, Any], kind: str) -> None:
    """Raises SourceError where the path was something else: its records would count again."""
    was = "growing file" if "offset" in progress else progress.get("kind", kind)
    if "offset" not in progress and kind == "growing file":
        was = "folder"
    if was != kind:
        raise SourceError(
            f"source {spec.name}: {spec.path} was a {was}, and is a {kind} now",
            "Put back what was there, or give what is new to a source of its own; or remove the source's folder under "
            "state_root to take it in anew.",
        )


def _require_names(spec: FilesSpec, found: Iterable[str]) -> None:
    """Raises SourceError for a file whose name is no text: neither logs nor Spark can say it."""
    bad = next((name for name in found if not is_utf8(name)), None)
    if bad is not None:
        raise SourceError(
            f"source {spec.name}: the name of file {os.fsencode(bad)!r} at {spec.path} is not UTF-8", "Rename it."
        )


def _base(spec: FilesSpec, info: pafs.FileInfo, found: Mapping[str, tuple[int, int]]) -> str | None:
    """The source's folder where names of folders in it give columns' values."""
    return spec.path if info.type == pafs.FileType.Directory and is_partitioned(found) else None


def _new_files(spec: FilesSpec, found: Mapping[str, tuple[int, int]], seen: Mapping[str, tuple[Any, ...]]) -> list[str]:
    changed = [name for name, state in found.items() if name in seen and tuple(seen[name]) != state]
    if changed:
        raise SourceError(
            f"source {spec.name}: file {changed[0]} has changed since it was taken in",
            f"With envelope {spec.envelope} files are read once. Write changes to new files, or use envelope snapshot.",
        )
    return sorted(name for name in found if name not in seen)


def _require_all(spec: FilesSpec, found: Collection[str], seen: Iterable[str]) -> None:
    """Raises SourceError where a file is gone that was taken in: taken in anew the source would lose its records."""
    gone = sorted(name for name in seen if name not in found)
    if gone:
        raise SourceError(
            f"source {spec.name}: its settings have changed, and {len(gone)} file(s) that were taken in are gone, "
            f"such as {gone[0]}",
            "Set the settings back, or put the files back; or remove the source's folder under state_root to take in "
            "what is there.",
        )


def _uri(spec: FilesSpec, name: str) -> str:
    """A listed file as Spark reads it: the name is taken literally, glob characters and all."""
    if spec.path and "://" in spec.path:
        return spark_uri(spec.path.split("://", 1)[0] + "://" + literal(name))
    return literal(name)


def _count(spec: FilesSpec, filesystem: pafs.FileSystem, names: Sequence[str], size: int) -> int:
    if spec.format == "parquet":
        return sum(_rows(spec, filesystem, name) for name in names)
    return size // _SMALLEST_ROW + 1


def _rows(spec: FilesSpec, filesystem: pafs.FileSystem, name: str) -> int:
    """How many the Parquet file has. Raises SourceError where reading its schema would load code that it brings."""
    footer = pq.read_metadata(name, filesystem=filesystem)
    if b'"udt"' in (footer.metadata or {}).get(_SPARKS_SCHEMA, b""):
        raise SourceError(
            f"source {spec.name}: {name} has a column of a type that a program has defined",
            "Write it as what it holds, such as an array of doubles for a vector.",
        )
    rows: int = footer.num_rows
    return rows
