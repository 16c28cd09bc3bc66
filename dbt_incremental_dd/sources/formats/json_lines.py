"""A few lines of JSON read on the driver, where every value is what Spark's reader makes of it; else it is Spark's."""

from __future__ import annotations

import codecs
import json
import re

import pyarrow as pa

from dbt_incremental_dd.core.json_values import DECODER, has_lone_surrogate, once, struct_maker
from dbt_incremental_dd.core.plain_text import Moments
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.types import Field
from dbt_incremental_dd.sources.formats.limits import MOST_BYTES
from dbt_incremental_dd.sources.records import CORRUPT
from dbt_incremental_dd.trace.arrow import arrow_type

_LONGEST_LINE = 100_000
_DEEPEST = 300
"""Brackets in a line; there are bounds of Spark's parser that have nothing to do with the records."""
_ODD = re.compile(rb"\r|\x00|^\xef\xbb\xbf|\d{300}")


def parse(data: bytes, stored: Schema, moments: Moments, *, ignores_nulls: bool = False) -> pa.Table | None:
    """The records with the columns of ``stored``; None where some might be others to Spark, or malformed.

    ``moments``: of local times. ``ignores_nulls``: a line that is ``null`` is no record.
    """
    data = data.replace(b"\r\n", b"\n")
    if _ODD.search(data):
        return None
    rows = []
    try:
        record_of = struct_maker([Field(column.name, column.type) for column in stored], {CORRUPT}, moments)
        for line in data.decode().removesuffix("\n").split("\n"):
            if len(line) > _LONGEST_LINE or line.count("[") + line.count("{") > _DEEPEST:
                return None
            if has_lone_surrogate(line):
                return None
            record = record_of(DECODER.decode(line))
            if record is not None:
                rows.append(record)
            elif not ignores_nulls:
                return None
        schema = pa.schema([(column.name, arrow_type(column.type)) for column in stored])
        return pa.Table.from_pylist(rows, schema)
    except (ValueError, TypeError, RecursionError, OverflowError, pa.ArrowException):
        return None


def is_plain(data: bytes) -> bool:
    """Whether of no line Spark's reader leaves anything out, or puts something else in its place; False where that
    is not clear. What does not fit the columns is told by Spark itself."""
    if len(data) > MOST_BYTES or _LARGE.search(data):
        return False
    try:
        lines = _LINE_END.split(data.removeprefix(codecs.BOM_UTF8).decode())
        records = [line for line in lines if line.strip(" \t")]
        return not any(has_lone_surrogate(line) or isinstance(_ANY.decode(line), list) for line in records)
    except (ValueError, RecursionError):
        return False


_LARGE = re.compile(rb"[0-9][eE]\+?[0-9]{2}|[0-9]{39}")
"""Numbers that may be too large for a column."""
_LINE_END = re.compile(r"\r\n|\r|\n")
_ANY = json.JSONDecoder(object_pairs_hook=once)
