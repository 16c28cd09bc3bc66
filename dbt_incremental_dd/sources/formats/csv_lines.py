"""A few lines of CSV read on the driver, where every value is what Spark's reader makes of it; else it is Spark's."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping

import pyarrow as pa

from dbt_incremental_dd.core.plain_text import Moments, parser_of
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.sources.formats.options import is_set, option, without
from dbt_incremental_dd.trace.arrow import arrow_type

_ODD = re.compile(r"[\\\r\0\ufeff\ufffd]")
"""Escapes, other ends of lines, a byte order mark, and what stands for bytes that are no text."""
_SEPARATOR = re.compile(r"[,;|\t]")


def parse(data: bytes, stored: Schema, options: Mapping[str, str], moments: Moments) -> pa.Table | None:
    """The records of one file with the columns of ``stored``; None where some might be others to Spark, or malformed.
    ``moments``: of local times."""
    separator = option(options, "sep", option(options, "delimiter", ","))
    parsers = [parser_of(column.type, moments) for column in stored]
    if without(options, "header", "sep", "delimiter") or not _SEPARATOR.fullmatch(separator):
        return None
    split = _splitter(separator)
    try:
        text = data.decode().replace("\r\n", "\n")
        lines = text.removesuffix("\n").split("\n") if text else []
        if any(_ODD.search(line) or not line.strip() for line in lines):
            return None
        if is_set(options, "header") and lines and split(lines.pop(0)) != list(stored.names):
            return None
        rows = [split(line) for line in lines]
        if any(len(row) != len(parsers) for row in rows):
            return None
        columns = []
        for place, (column, parser) in enumerate(zip(stored, parsers, strict=True)):
            dtype = arrow_type(column.type)
            if parser is None or dtype is None:
                return None
            columns.append(pa.array([parser(row[place]) if row[place] else None for row in rows], dtype))
        return pa.table(columns, list(stored.names))
    except (ValueError, OverflowError, pa.ArrowException):
        return None


def _splitter(separator: str) -> Callable[[str], list[str]]:
    """Of lines into texts. Quotes are around all of a text, which holds none itself, or there are none; of an empty
    text in quotes Spark has a view of its own. Raises ValueError for other lines."""
    text = f'(?:"[^"]+"|[^"{separator}]*)'
    plain = re.compile(f"{text}(?:{re.escape(separator)}{text})*")

    def split(line: str) -> list[str]:
        if '"' not in line:
            return line.split(separator)
        if not plain.fullmatch(line):
            raise ValueError(line)
        return next(csv.reader([line], delimiter=separator))

    return split
