"""A relation of the catalog: what the catalog tells of it, and its data files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyarrow.fs import FileInfo, FileSelector, FileType

from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Described:
    """A relation as the catalog tells of it. ``kind``: MANAGED, EXTERNAL, VIEW, ...; ``partitioned_by``: columns with
    the types that they are declared with."""

    kind: str | None = None
    provider: str | None = None
    location: str | None = None
    partitioned_by: Mapping[str, str] = field(default_factory=dict)


def described(spark: SparkSession, relation: str, partition: str = "") -> Described:
    """A relation, or one of its partitions (``PARTITION (...)``); nothing where that cannot be told."""
    from pyspark.errors import AnalysisException  # not at the start: it takes long

    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {relation} {partition}").collect()
    except AnalysisException:
        return Described()
    # Columns come first, then headlines, each with what belongs to it: a column may be called as what is told later.
    told: dict[str, dict[str, str]] = {}
    for row in rows:
        name, value = row["col_name"], row["data_type"]
        if name.startswith("# ") and name != "# col_name":
            told[name] = {}
        elif told and name and name != "# col_name":
            told[list(told)[-1]].setdefault(name, value)
    table = told.get("# Detailed Table Information", {})
    own = told.get("# Detailed Partition Information", {}) if partition else table
    by = told.get("# Partition Information", {})
    return Described(table.get("Type"), str(table.get("Provider", "")).lower(), own.get("Location"), by)


_FILES = ("parquet", "csv", "json", "orc", "text")
"""Providers whose tables are the files in their folder."""


def folder_of(told: Described) -> str | None:
    """The folder of a table that is just the files in it, as the catalog has it; None of any other relation."""
    is_one = told.kind in ("MANAGED", "EXTERNAL") and told.provider in _FILES and not told.partitioned_by
    return told.location if is_one else None


def files_in(storage: Storage, folder: str) -> dict[str, Any] | None:
    """The data files in a table's folder by their paths, with size in bytes and time in ns; None if there is anything
    else in it, or it cannot be read."""
    filesystem, path = storage.filesystem(folder.removeprefix("file:"))
    try:
        found = [info for info in filesystem.get_file_info(FileSelector(path)) if not _is_hidden(info)]
    except OSError:
        return None
    is_flat = all(info.type == FileType.File for info in found)
    return {info.path: [info.size or 0, info.mtime_ns or 0] for info in found} if is_flat else None


def is_as_read(session: LazySession, storage: Storage, relation: str, progress: Mapping[str, Any]) -> bool:
    """Whether a table is certain to be as it was when a source had that progress: nobody has opened the catalog since,
    and the table's folder has just the files that were read. Told without a session."""
    folder, seen = progress.get("folder"), progress.get("files")
    is_known = not session.is_open and session.memory.has_table(relation)
    if not is_known or not isinstance(folder, str) or not seen:
        return False
    return bool(files_in(storage, folder) == seen)


def _is_hidden(info: FileInfo) -> bool:
    """As Spark passes over them."""
    return bool(info.base_name.startswith(("_", ".")))
