"""Files as a source: a directory whose new files are read once, or one file of lines that grows (``growing``).

Progress is each file's size and modification time. Of a snapshot in partitions only those whose files changed are read
and compared.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as pafs

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.sources import growing
from dbt_incremental_dd.sources.arrival import Arrival
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.sources.exchange import Records
from dbt_incremental_dd.sources.partitions import Partition, changed_partitions, is_partitioned, partition_of, without
from dbt_incremental_dd.sources.paths import check, literal, look_every
from dbt_incremental_dd.sources.reader import as_spark_writes, read, read_few
from dbt_incremental_dd.sources.visit import Visit
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.object_store import spark_uri
from dbt_incremental_dd.trace.read import schema_of

__all__ = ["arrivals", "check", "listing", "look_every", "sight"]

_SMALLEST_ROW = 20
"""Bytes; for guessing from a file's size how many records it has at most."""


def arrivals(visit: Visit) -> Arrival | None:
    """What is new at the source's path; None where nothing is."""
    spark, storage, spec, progress, stored = visit.spark, visit.storage, visit.spec, visit.progress, visit.stored
    assert spec.path is not None
    filesystem, path = storage.filesystem(spec.path)
    info = filesystem.get_file_info(path)
    if info.type == pafs.FileType.NotFound:
        raise SourceError(
            f"source {spec.name}: there is nothing at {spec.path}", "Check `path` in the source's settings."
        )
    whole = spec.envelope == "snapshot"
    if info.type == pafs.FileType.File and spec.format != "parquet" and not whole:
        return growing.arrivals(spark, storage, spec, filesystem, info, progress, stored)
    root = path.rstrip("/") if info.type == pafs.FileType.Directory else path.rsplit("/", 1)[0]
    found = listing(filesystem, info, root)
    seen = {name.removeprefix(f"{root}/"): tuple(state) for name, state in progress.get("files", {}).items()}
    if found == seen and stored is not None:
        return None
    base = _base(spec, info, found)
    changed = changed_partitions(found, seen, stored) if base is not None and whole else None
    if changed is not None:
        new = sorted(name for name in found if partition_of(name) in changed)
    else:
        new = sorted(found) if whole else _new_files(spec, found, seen)
    if not new and stored is not None and not whole:
        return None
    fresh = {f"{root}/{name}": partition_of(name) if base is not None else () for name in new}
    uris = [_uri(spec, name) for name in fresh]
    kept = found if whole else {**seen, **{name: found[name] for name in new}}
    size = sum(found[name][0] for name in new)
    if spec.format == "parquet" and stored is not None:
        _check_parquet(spec, filesystem, fresh, stored)
    few = read_few(spark, spec, filesystem, fresh, stored) if stored is not None and fresh else None
    records = few or Records(spark, read(spark, spec, uris, stored, base), _count(spec, filesystem, [*fresh], size))
    progress = {"files": {n: list(s) for n, s in kept.items()}}
    return Arrival(records, progress, whole=whole, within=None if changed is None else tuple(changed))


def sight(storage: Storage, spec: SourceSpec) -> Hashable:
    """The files' sizes and times."""
    filesystem, path = storage.filesystem(str(spec.path))
    info = filesystem.get_file_info(path)
    if info.type == pafs.FileType.Directory:
        return frozenset(listing(filesystem, info, info.path).items())
    return info.size, info.mtime_ns


def listing(filesystem: pafs.FileSystem, info: pafs.FileInfo, root: str) -> dict[str, tuple[int, int]]:
    """Every data file's size and modification time (ns), by its path below the root, which may be elsewhere next time;
    names that begin with ``_`` or ``.`` are none."""
    found = [info]
    if info.type == pafs.FileType.Directory:
        found = filesystem.get_file_info(pafs.FileSelector(info.path, recursive=True))
    return {
        item.path[len(root) + 1 :]: (item.size, item.mtime_ns)
        for item in found
        if item.type == pafs.FileType.File
        and not item.path.endswith((".tmp", ".crc"))
        and not any(part.startswith(("_", ".")) for part in item.path[len(root) :].split("/") if part)
    }


def _base(spec: SourceSpec, info: pafs.FileInfo, found: Mapping[str, tuple[int, int]]) -> str | None:
    """The source's folder where names of folders in it give columns' values."""
    return spec.path if info.type == pafs.FileType.Directory and is_partitioned(found) else None


def _new_files(
    spec: SourceSpec, found: Mapping[str, tuple[int, int]], seen: Mapping[str, tuple[Any, ...]]
) -> list[str]:
    changed = [name for name, state in found.items() if name in seen and tuple(seen[name]) != state]
    if changed:
        raise SourceError(
            f"source {spec.name}: file {changed[0]} has changed since it was taken in",
            f"With envelope {spec.envelope} files are read once. Write changes to new files, or use envelope snapshot.",
        )
    return sorted(name for name in found if name not in seen)


def _uri(spec: SourceSpec, name: str) -> str:
    """A listed file as Spark reads it: the name is taken literally, glob characters and all."""
    if spec.path and "://" in spec.path:
        return spark_uri(spec.path.split("://", 1)[0] + "://" + literal(name))
    return literal(name)


def _count(spec: SourceSpec, filesystem: pafs.FileSystem, names: Sequence[str], size: int) -> int:
    if spec.format == "parquet":
        return sum(pq.read_metadata(name, filesystem=filesystem).num_rows for name in names)
    return size // _SMALLEST_ROW + 1


def _check_parquet(
    spec: SourceSpec, filesystem: pafs.FileSystem, files: Mapping[str, Partition], stored: Schema
) -> None:
    """Every new file has the stored columns, in their types."""
    from pyspark.sql.pandas.types import from_arrow_schema

    for name, partition in files.items():
        try:
            arrow = as_spark_writes(pq.read_schema(name, filesystem=filesystem))
            own = {c.name: c.type for c in schema_of(from_arrow_schema(arrow))}
        except (OSError, pa.ArrowException) as error:
            raise SourceError(
                f"source {spec.name}: {name} is not a Parquet file: {error}", "Remove or replace it."
            ) from error
        for column in without(stored, partition):
            if column.name not in own:
                if column.name in spec.key:
                    raise SourceError(
                        f"source {spec.name}: {name} lacks key column {column.name}; it has {', '.join(own)}",
                        "Replace the file.",
                    )
            elif not _compatible(own[column.name], column.type):
                types = f"is {own[column.name]}, so far it was {column.type}"
                raise SourceError(
                    f"source {spec.name}: column {column.name} of {name} {types}",
                    "Replace the file, or take the source in anew after removing its folder under state_root.",
                )


def _compatible(one: str, other: str) -> bool:
    return one == other or {one, other} == {"timestamp", "timestamp_ntz"} or one.startswith("{")
