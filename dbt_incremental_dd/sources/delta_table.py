"""A Delta table as a source: its log tells which files were added and removed between two versions.

Only those files are read. Records of an added file are +1, of a removed one -1.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow import fs as pafs
from pyspark.sql import functions as F

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.sources.arrival import Arrival
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.sources.exchange import Records
from dbt_incremental_dd.sources.paths import check, look_every
from dbt_incremental_dd.sources.visit import Visit
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.object_store import spark_uri
from dbt_incremental_dd.trace.read import quote_name, struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["arrivals", "check", "look_every", "sight"]


def sight(storage: Storage, spec: SourceSpec) -> Hashable:
    """The log's last entry."""
    filesystem, path = storage.filesystem(str(spec.path))
    entries = filesystem.get_file_info(pafs.FileSelector(f"{path}/_delta_log"))
    return max((entry.base_name for entry in entries if entry.base_name.endswith(".json")), default="")


def arrivals(visit: Visit) -> Arrival | None:
    """Records added and removed since the version taken in last; None where the version is the same."""
    spark, storage, spec, progress, stored = visit.spark, visit.storage, visit.spec, visit.progress, visit.stored
    table = _open(storage, spec, None)
    _require_plain(spec, table)
    before = progress.get("version")
    if before == table.version() and stored is not None:
        return None
    schema = Schema.from_json(table.schema().to_json())
    if stored is not None and stored != schema:
        raise SourceError(
            f"source {spec.name}: the columns of the Delta table at {spec.path} changed",
            "Take it in anew: remove its folder under state_root, then run the models on it with --full-refresh.",
        )
    now = _files(table)
    then = _files(_open(storage, spec, int(before))) if before is not None else {}
    added = {path: values for path, values in now.items() if path not in then}
    removed = {path: values for path, values in then.items() if path not in now}
    rows = sum(values["rows"] for values in added.values())
    gone = _read(spark, spec, schema, table, removed) if removed else None
    progress = {"version": table.version()}
    return Arrival(Records(spark, _read(spark, spec, schema, table, added), rows), progress, removed=gone)


def _open(storage: Storage, spec: SourceSpec, version: int | None) -> DeltaTable:
    assert spec.path is not None
    try:
        return DeltaTable(spec.path, version=version, storage_options=dict(storage.options))
    except TableNotFoundError as error:
        raise SourceError(f"source {spec.name}: there is no Delta table at {spec.path}", "Check `path`.") from error
    except (DeltaError, OSError) as error:
        raise SourceError(
            f"source {spec.name}: the Delta table at {spec.path} cannot be read at version {version}: {error}",
            "If its log was cleaned up, take the source in anew: remove its folder under state_root.",
        ) from error


def _require_plain(spec: SourceSpec, table: DeltaTable) -> None:
    features = set(table.protocol().reader_features or ())
    unread = features & {"deletionVectors", "columnMapping"}
    if unread:
        raise SourceError(
            f"source {spec.name}: the Delta table at {spec.path} uses {', '.join(sorted(unread))}",
            "Register it in Spark's catalog and read it as a relation with envelope snapshot.",
        )


def _files(table: DeltaTable) -> dict[str, dict[str, Any]]:
    rows = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return {
        row["path"]: {
            "rows": row["num_records"] or 0,
            "partition": {name[10:]: value for name, value in row.items() if name.startswith("partition.")},
        }
        for row in rows
    }


def _read(
    spark: SparkSession, spec: SourceSpec, schema: Schema, table: DeltaTable, files: Mapping[str, Mapping[str, Any]]
) -> DataFrame:
    """The files' records; partition columns, which the files do not hold, come from the log."""
    partitions = table.metadata().partition_columns
    if not files:
        return spark.createDataFrame([], struct(schema))
    types = {field.name: field.dataType for field in struct(schema)}
    groups: dict[tuple[Any, ...], list[str]] = {}
    for path, values in files.items():
        key = tuple(values["partition"].get(name) for name in partitions)
        groups.setdefault(key, []).append(spark_uri(f"{spec.path}/{path}"))
    inside = struct(Schema(tuple(column for column in schema if column.name not in partitions)))
    frames = []
    for key, paths in groups.items():
        frame = spark.read.schema(inside).parquet(*paths)
        for name, value in zip(partitions, key, strict=True):
            frame = frame.withColumn(name, F.lit(value).cast(types[name]))
        frames.append(frame.select(*(quote_name(name) for name in schema.names)))
    result = frames[0]
    for frame in frames[1:]:
        result = result.unionByName(frame)
    return result
