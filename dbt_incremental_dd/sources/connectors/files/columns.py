"""The columns of a source's files at their first intake, as far as they are known without Spark."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as pafs

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import Array, Atomic, Decimal, Field, Map, Struct, Type
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.sources.connectors.files.spec import FilesSpec
from dbt_incremental_dd.sources.formats.parquet import as_spark_writes
from dbt_incremental_dd.sources.record_schema import declared_columns, inferred
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.spark_reader import schema_of, struct

_PLAIN = ("byte", "short", "integer", "long", "float", "double", "string", "binary", "boolean", "date", "timestamp")
_TYPES: dict[pa.DataType, Type] = {arrow_type(Atomic(name)): Atomic(name) for name in _PLAIN}
_OTHER_WRITERS = {pa.timestamp("ms", "UTC"): Atomic("timestamp")}
_SPARKS_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


def first_columns(
    session: LazySession, spec: FilesSpec, filesystem: pafs.FileSystem, names: Iterable[str]
) -> Schema | None:
    """The columns of records: as declared, or as all of the Parquet files have them. None if only Spark knows.

    Raises ConfigError for a declared type that there is not.
    """
    told = declared_columns(session, spec)
    if told is not None:
        return told
    return _of_parquet(spec, filesystem, names) if spec.format == "parquet" and not spec.options else None


def _of_parquet(spec: FilesSpec, filesystem: pafs.FileSystem, names: Iterable[str]) -> Schema | None:
    """The files' own columns. Without Spark's form of the schema, types have to be those that each writer means so."""
    found: set[Schema | None] = set()
    for name in names:
        try:
            schema = pq.read_schema(name, filesystem=filesystem)
        except (OSError, pa.ArrowException):  # Spark says what is wrong with it
            return None
        found.add(None if _SPARKS_SCHEMA in (schema.metadata or {}) else _plain(as_spark_writes(schema)))
    schema = found.pop() if len(found) == 1 else None
    return None if schema is None else schema_of(inferred(spec, struct(schema)))


def _plain(schema: pa.Schema) -> Schema | None:
    types = [_type(field.type) for field in schema]
    known = [Column(field.name, type) for field, type in zip(schema, types, strict=True) if type]
    return Schema(tuple(known)) if len(known) == len(types) else None


def _type(arrow: pa.DataType) -> Type | None:
    if pa.types.is_decimal128(arrow):
        return Decimal(arrow.precision, arrow.scale) if 0 <= arrow.scale <= arrow.precision else None
    if pa.types.is_struct(arrow):
        fields = [(field.name, _type(field.type)) for field in arrow]
        known = tuple(Field(name, type) for name, type in fields if type)
        return Struct(known) if known and len(known) == len(fields) else None
    if pa.types.is_map(arrow):
        key, value = _type(arrow.key_type), _type(arrow.item_type)
        return Map(key, value) if key and value else None
    if pa.types.is_list(arrow):
        element = _type(arrow.value_type)
        return element and Array(element)
    return _TYPES.get(arrow) or _OTHER_WRITERS.get(arrow)
