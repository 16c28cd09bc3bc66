"""What Parquet files say that their columns are, beside those that a source has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as pafs

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import NESTED, TIMESTAMP, TIMESTAMP_NTZ, Type
from dbt_incremental_dd.sources.connectors.files.spec import FilesSpec
from dbt_incremental_dd.sources.definition import require_columns
from dbt_incremental_dd.sources.formats.parquet import as_spark_writes
from dbt_incremental_dd.sources.partitions import Partition, without
from dbt_incremental_dd.sources.poll import PollRequest
from dbt_incremental_dd.sources.record_schema import inferred
from dbt_incremental_dd.trace.spark_reader import schema_of, struct


def columns_of(spec: FilesSpec, filesystem: pafs.FileSystem, name: str) -> Schema:
    """The file's columns, in Spark's types. Raises SourceError where it is no Parquet file."""
    from pyspark.sql.pandas.types import from_arrow_schema

    try:
        return schema_of(from_arrow_schema(as_spark_writes(pq.read_schema(name, filesystem=filesystem))))
    except (OSError, pa.ArrowException) as error:
        raise SourceError(
            f"source {spec.name}: {name} is not a Parquet file: {error}", "Remove or replace it."
        ) from error


def followed(request: PollRequest[FilesSpec], stored: Schema, files: Iterable[Schema]) -> Schema:
    """The columns of files that are all there is, and say themselves what their columns are: where all of them agree,
    theirs. Raises ColumnsChanged."""
    first, *others = dict.fromkeys(files) or {stored: None}
    if others:
        return stored

    def known(column: Column) -> Column:
        was = stored.find(column.name)
        return was if was is not None and was.name == column.name and _compatible(column.type, was.type) else column

    found = Schema(tuple(map(known, schema_of(inferred(request.spec, struct(first))))))
    require_columns(request, found)
    return found


def require_stored(
    spec: FilesSpec, columns: Mapping[str, Schema], files: Mapping[str, Partition], stored: Schema
) -> None:
    """Raises SourceError where a file lacks a key column, or has a stored column in another type. ``columns``: of each
    file."""
    for name, partition in files.items():
        own = {c.name: c.type for c in columns[name]}
        for column in without(stored, partition):
            if column.name not in own:
                if column.name in spec.settings.key:
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


def _compatible(one: Type, other: Type) -> bool:
    return one == other or {one, other} == {TIMESTAMP, TIMESTAMP_NTZ} or isinstance(one, NESTED)
