"""Messages of Avro as records, decoded on the driver by the schema that each was written with.

A field that a message's schema does not have is NULL; one that the columns do not have is left out.
"""

from __future__ import annotations

import datetime
import io
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from dbt_incremental_dd.core.errors import ConfigError, SourceError
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import STRING
from dbt_incremental_dd.sources.connectors.kafka.avro_types import spark_struct
from dbt_incremental_dd.sources.connectors.kafka.feed import Feed
from dbt_incremental_dd.sources.connectors.kafka.registry import schema_of_id
from dbt_incremental_dd.sources.connectors.kafka.text import added, with_place
from dbt_incremental_dd.sources.records import CORRUPT
from dbt_incremental_dd.trace.arrow_reader import stored_types

_MAGIC = 0
_HEADER = 5
"""Bytes before the record: a zero, and its schema's number."""
_SHOWN = 100
"""Bytes of a malformed message that are told, in hexadecimal."""


class _Bad(Exception):
    """A message is not what its schema, or the columns, say."""


def columns(feed: Feed, value: bytes) -> StructType:
    """The columns of the schema that a message was written with."""
    try:
        return spark_struct(feed.source, _schema(feed, value))
    except _Bad as error:
        raise SourceError(
            f"source {feed.source}: the first message of topic {feed.topic} is not Avro: {error}",
            "Correct `format`, or declare the source's columns with their data_type.",
        ) from error


def schema_of_records(feed: Feed, stored: Schema) -> Schema:
    """What ``decoded`` makes."""
    return Schema((*stored.columns, *added(feed).columns, Column(CORRUPT, STRING)))


def decoded(feed: Feed, messages: pa.Table, stored: Schema, *, skips_nulls: bool) -> tuple[pa.Table, Schema]:
    """The messages' records, with the text of what is malformed."""
    if skips_nulls:
        messages = messages.filter(pc.is_valid(messages["value"]))
    types = pa.struct(list(stored_types(stored)))
    pairs = zip(messages["key"].to_pylist(), messages["value"].to_pylist(), strict=True)
    rows: list[dict[str, Any]] = []
    corrupt: list[str | None] = []
    for key, value in pairs:
        try:
            row = _record(feed, key, value, types)
            pa.scalar(row, types)
            rows.append(row)
            corrupt.append(None)
        except (_Bad, ValueError, TypeError, OverflowError, EOFError, IndexError, KeyError, pa.ArrowException) as error:
            rows.append({})
            corrupt.append(f"{_hex(value)} (key {_hex(key)}): {error}")
    array = pa.array(rows, types)
    table = pa.table([array.field(i) for i in range(types.num_fields)], list(stored.names))
    table = with_place(feed, table, messages)
    return table.append_column(CORRUPT, pa.array(corrupt, pa.string())), schema_of_records(feed, stored)


def _record(feed: Feed, key: bytes | None, value: bytes | None, types: pa.StructType) -> dict[str, Any]:
    if value is None and not feed.key:
        raise _Bad("a message without a value")
    row = {} if value is None else _fitted(_read(feed, value), types)
    if feed.key:
        row = {**row, **_key(feed, key, types)}
    return row


def _key(feed: Feed, key: bytes | None, types: pa.StructType) -> dict[str, Any]:
    """The key's columns. Raises _Bad where it does not say them."""
    if key is None:
        raise _Bad("a message without a key")
    found: Any
    if feed.key_format == "avro":
        found = _read(feed, key)
    elif feed.key_format == "json":
        import json

        found = json.loads(key)
    else:
        found = pa.scalar(key.decode()).cast(types.field(feed.key[0]).type).as_py()
    if not isinstance(found, dict):
        if len(feed.key) > 1:
            raise _Bad(f"its key is no record of {', '.join(feed.key)}")
        found = {feed.key[0]: found}
    if missing := [name for name in feed.key if found.get(name) is None]:
        raise _Bad(f"its key has no {missing[0]}")
    return {name: _fit(found[name], types.field(name).type) for name in feed.key}


def _read(feed: Feed, data: bytes) -> Any:
    import fastavro

    body = io.BytesIO(data[_HEADER:])
    found = fastavro.schemaless_reader(body, _schema(feed, data), None)
    if body.tell() != len(data) - _HEADER:
        raise _Bad("there are bytes behind the record")
    return found


def _schema(feed: Feed, data: bytes) -> Any:
    """The schema that the data names. Raises _Bad where it names none."""
    if len(data) < _HEADER or data[0] != _MAGIC:
        raise _Bad("it does not begin with the number of a schema in the registry")
    try:
        import fastavro  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"source {feed.source}: format avro needs fastavro, which is not installed",
            "pip install 'dbt-incremental-dd[kafka]'",
        ) from error
    return schema_of_id(feed.source, feed.registry, int.from_bytes(data[1:_HEADER], "big"))


def _fitted(record: Any, types: pa.StructType) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise _Bad("it is no record")
    return {field.name: _fit(record.get(field.name), field.type) for field in types}


def _fit(value: Any, dtype: pa.DataType) -> Any:
    """A decoded value as Arrow takes it for a column of that type."""
    if value is None:
        return None
    if pa.types.is_struct(dtype):
        return _fitted(value, dtype)
    if pa.types.is_map(dtype) and isinstance(value, Mapping):
        return [(key, _fit(one, dtype.item_type)) for key, one in value.items()]
    if pa.types.is_list(dtype) and isinstance(value, Sequence):
        return [_fit(one, dtype.value_type) for one in value]
    if pa.types.is_string(dtype) and isinstance(value, uuid.UUID | datetime.time):
        return value.isoformat() if isinstance(value, datetime.time) else str(value)
    if pa.types.is_boolean(dtype) is not isinstance(value, bool):
        raise _Bad(f"{value!r} is no {dtype}")
    if pa.types.is_date(dtype) and isinstance(value, datetime.datetime):
        raise _Bad(f"{value!r} is no {dtype}")
    return value


def _hex(data: bytes | None) -> str:
    return "NULL" if data is None else data[:_SHOWN].hex()
