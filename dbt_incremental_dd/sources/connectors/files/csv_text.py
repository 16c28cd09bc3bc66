"""What is wrong with lines of CSV that Spark's own reader passes over in silence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.sources.connectors.files.spec import FilesSpec
from dbt_incremental_dd.sources.formats.options import is_set, option, parser_options, without

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_OF_FILES = ("header", "enforceSchema", "multiLine", "lineSep", "mode", "inferSchema")
REPLACED = "\ufffd"
"""What Spark reads for bytes that are not UTF-8."""


def has_other_bytes(spec: FilesSpec, lines: DataFrame, text: Column, file: Column, width: int) -> bool:
    """Whether any of the lines is not UTF-8. ``width``: how many columns the files have.

    Raises SourceError where a quote that opens a field is not closed on its line: the line is the first part of a
    record.
    """
    first_open = F.max(F.when(_has_open_quote(spec.options, text, width), F.struct(file, F.make_valid_utf8(text))))
    is_other, found = lines.agg(F.max(~F.is_valid_utf8(text)), first_open).head() or (False, None)
    if found is not None:
        path, line = found
        raise SourceError(
            f"source {spec.name}: a quote is opened and not closed on this line of {path}:\n    {line[:120]}",
            "Where records span lines set options: {multiLine: true}, which needs a folder of files; else correct it.",
        )
    return bool(is_other)


def _has_open_quote(options: Mapping[str, str], text: Column, width: int) -> Column:
    quote = option(options, "quote", '"')
    if is_set(options, "multiLine") or not quote or quote == "\0":
        return F.lit(False)
    quotes = F.length(text) - F.length(F.replace(text, F.lit(quote), F.lit("")))
    return (quotes % 2 == 1) & _is_open(options, text, width)


def _is_open(options: Mapping[str, str], text: Column, width: int) -> Column:
    """A field is put at the line's end: it is none of the fields where an open quote has taken it in."""
    comment = option(options, "comment", "")
    mark = F.xxhash64(text).cast("string")
    names = [f"c{i}" for i in range(width + 1)]
    schema = ", ".join(f"{name} STRING" for name in names)
    longer = F.concat(text, F.lit(option(options, "sep", option(options, "delimiter", ","))), mark)
    fields = F.from_csv(longer, schema, parser_options(without(options, *_OF_FILES)))
    is_there = F.exists(F.array(*(fields[name] for name in names)), lambda one: one == mark)
    is_open = ~F.coalesce(is_there, F.lit(False))
    return is_open & ~text.startswith(comment) if comment else is_open
