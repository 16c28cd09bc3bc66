"""Which partitions of a table of the catalog have changed, by its data files.

A catalog may have a partition anywhere. So what the files' folders say is believed only as far as the catalog has each
partition in the folder of its own name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from pyspark.errors import AnalysisException

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.sources import partitions
from dbt_incremental_dd.sources.catalog_table import Described, described
from dbt_incremental_dd.sources.partitions import Partition, partition_of
from dbt_incremental_dd.trace.spark_reader import quote_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PLAIN = frozenset(("string", "tinyint", "smallint", "int", "bigint", "boolean", "date"))
"""Types of which a folder's name says the value as it is read; a CHAR is read with blanks behind it."""
_ASKED = 64
"""Partitions of which the catalog is asked at most, one by one."""

Files = Mapping[str, Sequence[int]]
"""Sizes and times by path."""


def changed_partitions(
    spark: SparkSession, relation: str, told: Described, columns: Schema, found: Files, seen: Files
) -> set[Partition] | None:
    """Those whose files are others than before; None where that cannot be told of each by itself."""
    by = told.partitioned_by
    if told.location is None or not by or not _PLAIN.issuperset(by.values()):
        return None
    folder = _path(told.location)
    now, then = (_below(folder, files) for files in (found, seen))
    changed = None if now is None or then is None else partitions.changed_partitions(now, then, columns)
    if changed is None or now is None:
        return None
    known, held = _known(spark, relation), {partition_of(name) for name in now}
    if known is None or not held <= known:
        return None
    # As many partitions as folders with files, all of these covered: if none of the others is elsewhere, none is.
    asked = (changed & known) | (known - held)
    if len(asked) > _ASKED or any(partitions.layout(one) != tuple(by) for one in known):
        return None
    at_home = all(_is_at_home(spark, relation, folder, one) for one in asked)
    return changed if at_home else None


def _path(location: str) -> str:
    """As files of the table are called: a local path, or one that begins with the bucket."""
    parsed = urlparse(location)
    return parsed.path.rstrip("/") if parsed.scheme in ("", "file") else f"{parsed.netloc}{parsed.path}".rstrip("/")


def _below(folder: str, files: Files) -> Files | None:
    """By the paths below the folder; None where some are elsewhere."""
    if not all(name.startswith(f"{folder}/") for name in files):
        return None
    return {name.removeprefix(f"{folder}/"): state for name, state in files.items()}


def _known(spark: SparkSession, relation: str) -> set[Partition] | None:
    """The catalog's partitions; None where it does not keep them."""
    try:
        return {partition_of(f"{row[0]}/") for row in spark.sql(f"SHOW PARTITIONS {relation}").collect()}
    except AnalysisException:
        return None


def _is_at_home(spark: SparkSession, relation: str, folder: str, partition: Partition) -> bool:
    """Whether the partition is in the folder of its own name."""
    literals = (
        f"{quote_name(key)} = '{_escaped(partitions.NULL if text is None else text)}'" for key, text in partition
    )
    location = described(spark, relation, f"PARTITION ({', '.join(literals)})").location
    return location is not None and partition_of(f"{_path(location).removeprefix(folder + '/')}/") == partition


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
