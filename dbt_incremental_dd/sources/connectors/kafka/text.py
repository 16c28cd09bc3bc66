"""Messages of JSON or CSV as records: a few JSON ones on the driver, others by Spark; both mean the same.

A message whose value does not fit the columns, or whose key does not fit the key's, is malformed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from dbt_incremental_dd.core.plain_text import Moments
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import BOOLEAN, INTEGERS, LONG, STRING
from dbt_incremental_dd.sources.connectors.kafka.feed import Feed
from dbt_incremental_dd.sources.formats import json_lines, json_text
from dbt_incremental_dd.sources.formats.limits import MOST_BYTES
from dbt_incremental_dd.sources.records import CORRUPT, FILE, GONE, ORDER
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.spark_reader import quote_name, struct

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

_WHOLE = re.compile(rb"-?\d{1,18}")


def added(feed: Feed) -> Schema:
    """The columns that records have besides their own, but for the corrupt text."""
    gone = (Column(GONE, BOOLEAN),) if feed.key else ()
    return Schema((Column(FILE, STRING), Column(ORDER, LONG), *gone))


def parsed(feed: Feed, messages: pa.Table, stored: Schema, moments: Moments, *, skips_nulls: bool) -> pa.Table | None:
    """The messages' records without a Spark job; None where some might be others to Spark, or malformed. ``moments``:
    of local times."""
    if feed.format != "json" or feed.reader:
        return None
    if skips_nulls:
        messages = messages.filter(pc.is_valid(messages["value"]))
    values = messages["value"]
    if not feed.key and values.null_count:
        return None
    rows = _lines(values.drop_null().to_pylist(), stored, moments)
    if rows is None:
        return None
    present = pc.cast(pc.is_valid(values), pa.int64()).combine_chunks()
    places = pc.if_else(pc.equal(present, 1), pc.subtract(pc.cumulative_sum(present), 1), None)
    table = rows.take(places)
    if feed.key:
        keys = _keys(feed, messages["key"], stored.select(feed.key), moments)
        if keys is None:
            return None
        for name in feed.key:
            table = table.set_column(table.column_names.index(name), name, keys[name])
    return with_place(feed, table, messages)


def with_place(feed: Feed, table: pa.Table, messages: pa.Table) -> pa.Table:
    """Records with where each message is, and whether it takes its key's row away."""
    where = pc.binary_join_element_wise(
        f"{feed.topic}[",
        messages["partition"].cast(pa.string()),
        "]@",
        messages["offset"].cast(pa.string()),
        "",
    )
    table = table.append_column(FILE, where).append_column(ORDER, messages["offset"])
    return table.append_column(GONE, pc.is_null(messages["value"])) if feed.key else table


def _lines(values: Sequence[bytes], stored: Schema, moments: Moments) -> pa.Table | None:
    """JSON texts as records; None where one of them is not one line."""
    if not values:
        return pa.table({c.name: pa.array([], arrow_type(c.type) or pa.null()) for c in stored})
    data = b"\n".join(values)
    are_few = len(data) <= MOST_BYTES and data.count(b"\n") == len(values) - 1
    return json_lines.parse(data, stored, moments) if are_few else None


def _keys(feed: Feed, keys: pa.ChunkedArray, columns: Schema, moments: Moments) -> pa.Table | None:
    """The key's columns; None where a key is missing, or does not plainly say them."""
    texts = keys.to_pylist()
    if None in texts:
        return None
    if feed.key_format == "json":
        found = _lines([_object(feed.key, text) for text in texts], columns, moments)
        return None if found is None or any(found[name].null_count for name in feed.key) else found
    (column,) = columns
    dtype = arrow_type(column.type)
    try:
        if column.type == STRING:
            return pa.table({column.name: pa.array([text.decode() for text in texts], dtype)})
        if column.type in INTEGERS and all(map(_WHOLE.fullmatch, texts)):
            return pa.table({column.name: pa.array(list(map(int, texts)), dtype)})
    except (ValueError, pa.ArrowException):
        return None
    return None


def _object(names: Sequence[str], text: bytes) -> bytes:
    """A key that is one JSON value becomes an object, as keys of several columns are."""
    if len(names) > 1 or text.lstrip().startswith(b"{"):
        return text
    return b'{"' + names[0].encode() + b'": ' + text + b"}"


def decoded(feed: Feed, messages: DataFrame, stored: Schema, *, skips_nulls: bool) -> DataFrame:
    """The messages' records, with the text of what is malformed."""
    if skips_nulls:
        messages = messages.where("value IS NOT NULL")
    text = F.make_valid_utf8(F.col("value").cast("string"))
    wanted = struct(stored).add(CORRUPT, StringType())
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, **feed.reader}
    if feed.format == "csv":
        ddl = ", ".join(f"{quote_name(field.name)} {field.dataType.simpleString()}" for field in wanted.fields)
        record = F.from_csv(text, ddl, options)
    else:
        record = F.from_json(text, wanted, options)
    places = [F.col(name) for name in ("partition", "offset", "key", "value")]
    raw = F.col("value").cast("string")
    wrong = F.lit(None).cast("string")
    if feed.format != "csv":
        wrong = F.when(json_text.is_wrong(raw, struct(stored), feed.reader), text)
    frame = messages.select(
        *places, text.alias("text"), record.alias("record"), _key(feed, stored).alias("ids"), wrong.alias("wrong")
    )
    columns = {name: F.col(f"record.{quote_name(name)}") for name in stored.names}
    columns |= {name: F.col(f"ids.{quote_name(name)}") for name in feed.key}
    where = F.format_string(f"{_percents(feed.topic)}[%d]@%d", "partition", "offset")
    made = [column.alias(name) for name, column in columns.items()]
    made += [where.alias(FILE), F.col("offset").alias(ORDER), _corrupt(feed).alias(CORRUPT)]
    if feed.key:
        made.append(F.col("value").isNull().alias(GONE))
    return frame.select(*made)


def _key(feed: Feed, stored: Schema) -> Expression:
    """The message's key as a struct of the key's columns; a field is NULL where the key does not say it."""
    columns = struct(stored.select(feed.key))
    if not feed.key:
        return F.lit(None).cast("struct<none:int>")
    text = F.when(F.expr("is_valid_utf8(CAST(key AS STRING))"), F.col("key").cast("string"))
    if feed.key_format == "json":
        if len(feed.key) == 1:
            name = F.lit('{"' + feed.key[0] + '": ')
            text = F.when(F.ltrim(text).startswith("{"), text).otherwise(F.concat(name, text, F.lit("}")))
        return F.from_json(text, columns, {"mode": "PERMISSIVE"})
    (field,) = columns.fields
    return F.struct(text.try_cast(field.dataType).alias(field.name))


def _corrupt(feed: Feed) -> Expression:
    """The text of a message that does not fit; NULL for one that does."""
    is_there, text = F.col("value").isNotNull(), F.col("text")
    fits_not = F.when(F.expr("NOT is_valid_utf8(CAST(value AS STRING))"), text)
    told = F.coalesce(fits_not, F.when(F.col("record").isNull(), text), F.col("wrong"), F.col(f"record.{CORRUPT}"))
    value = F.when(is_there, told)
    if not feed.key:
        return F.when(~is_there, F.lit("a message without a value")).otherwise(value)
    is_keyless = F.col("ids").isNull()
    for name in feed.key:
        is_keyless |= F.col(f"ids.{quote_name(name)}").isNull()
    key = F.coalesce(F.make_valid_utf8(F.col("key").cast("string")), F.lit("NULL"))
    told = F.concat(F.lit(f"as key {', '.join(feed.key)} it has "), key, F.lit(": "), F.coalesce(text, F.lit("NULL")))
    return F.when(is_keyless, told).otherwise(value)


def _percents(text: str) -> str:
    return text.replace("%", "%%")
