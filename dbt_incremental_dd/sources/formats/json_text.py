"""What is wrong with a text of JSON that Spark's own reader passes over in silence.

Spark's reader takes the first value of a line and leaves out what comes after it; of a name that comes twice the last;
for a lone surrogate a question mark; for a number that a column cannot have an infinity (RFC 8259, sections 2, 4, 7
and 8). Here each of these is malformed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from dbt_incremental_dd.sources.formats.options import parser_options
from dbt_incremental_dd.sources.formats.values import is_infinite

if TYPE_CHECKING:
    from pyspark.sql import Column

_LONGEST_VARIANT = 16_000_000
"""Bytes; of longer texts Spark makes no variant."""
_NOT_A_NUMBER = r"([\[,:]\s*)[-+]?(?:NaN|INF|Inf|Infinity)(?=\s*[,\]}])"
"""What Spark's reader takes for numbers, and JSON does not know."""
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_LARGE = r"[0-9][eE]\+?[0-9]{2}|[0-9]{39}"
_SURROGATE = r"\\u[dD][89a-fA-F]"


def is_blank(text: Column) -> Column:
    """Whether there is nothing in the text; such lines are no records."""
    return _trimmed(text) == ""


def is_wrong(raw: Column, wanted: StructType, options: Mapping[str, str]) -> Column:
    """Whether Spark would leave out a part of the text, which stands for one record of the ``wanted`` columns, or put
    something else in its place. What does not fit the columns is told by Spark itself. ``raw``: whatever its bytes."""
    text = F.make_valid_utf8(raw)
    is_array = _trimmed(text).startswith("[")
    return ~is_one_text(raw, options) | is_array | _overflows(text, wanted, options)


def is_one_text(raw: Column, options: Mapping[str, str]) -> Column:
    """Whether the text is one value, of which nothing is left out."""
    text = F.make_valid_utf8(raw)
    return F.is_valid_utf8(raw) & F.coalesce(_is_one_value(text, options), F.lit(False)) & ~_has_lone_surrogate(text)


def _trimmed(text: Column) -> Column:
    return F.btrim(text, F.lit(" \t\r\n"))


def _is_one_value(text: Column, options: Mapping[str, str]) -> Column:
    """Whether nothing follows the first value, and in no object a name comes twice."""
    is_lenient = any(key.lower().startswith("allow") and value.lower() == "true" for key, value in options.items())
    loosely = _is_one_loosely(text, options)
    if is_lenient:
        return loosely
    return F.when(F.octet_length(text) < _LONGEST_VARIANT, _is_one_strictly(text)).otherwise(loosely)


def _is_one_strictly(text: Column) -> Column:
    """A hash of the text stands behind it: it is the second value only where the text is one."""
    has_words = text.contains("NaN") | text.contains("Inf") | text.contains("INF")
    standard = F.when(has_words, F.regexp_replace(text, _NOT_A_NUMBER, "$10")).otherwise(text)
    mark = F.xxhash64(text)
    both = F.try_parse_json(F.concat(F.lit("["), standard, F.lit(","), mark.cast("string"), F.lit("]")))
    return F.coalesce(F.try_variant_get(both, "$[1]", "bigint") == mark, F.lit(False))


def _is_one_loosely(text: Column, options: Mapping[str, str]) -> Column:
    """The same in the dialect that the options allow: in an array and in an object, for what closes one early leaves
    the other open. Names are compared at the outermost level."""
    dialect = parser_options(options)
    array = F.from_json(F.concat(F.lit("["), text, F.lit("\n]")), "array<string>", dialect)
    object = F.from_json(F.concat(F.lit('{"x":'), text, F.lit("\n}")), "map<string,string>", dialect)
    names = F.map_keys(F.from_json(text, "map<string,string>", dialect))
    are_distinct = F.coalesce(F.size(F.array_distinct(names)) == F.size(names), F.lit(True))
    return F.coalesce((F.size(array) == 1) & (F.size(object) == 1), F.lit(False)) & are_distinct


def _has_lone_surrogate(text: Column) -> Column:
    """Of escapes; a backslash that is escaped itself begins none."""
    escapes = F.replace(text, F.lit("\\\\"), F.lit(""))
    lone = F.regexp_replace(escapes, _PAIR, " ").rlike(_SURROGATE)
    return F.when(text.contains("\\ud") | text.contains("\\uD"), lone).otherwise(F.lit(False))


def _overflows(text: Column, wanted: StructType, options: Mapping[str, str]) -> Column:
    """Whether a number became infinite. Texts without large exponents, or many digits, need not be parsed for that."""
    record = F.from_json(text, wanted, {**options, "mode": "PERMISSIVE"})
    found = [is_infinite(record[field.name], field.dataType) for field in wanted.fields]
    infinite = [one for one in found if one is not None]
    if not infinite:
        return F.lit(False)
    is_large = text.rlike(_LARGE) & ~text.contains("Inf") & ~text.contains("INF")
    return F.when(is_large, F.coalesce(reduce(or_, infinite), F.lit(False))).otherwise(F.lit(False))
