"""The parts of a text that is split: Spark's ``split`` by a pattern that stands for one text."""

from __future__ import annotations

import re

import pyarrow as pa

from dbt_incremental_dd.core.types import STRING, Array
from dbt_incremental_dd.local.functions.function import Functions, fixed
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import MOST_ROWS, column, constant_text, require

_PLAIN = re.compile(r"(?:[\w ,;:/#@&=~%<>-]|\\[!-/:-@\[-`{-~])+", re.ASCII)
_ESCAPE = re.compile(r"\\(.)")
_ONE = re.compile(r"\[([.|*+?$(){}/,;:-])\]")
"""A class of one character."""


def _literal(pattern: str) -> str:
    """The text that the pattern alone matches."""
    one = _ONE.fullmatch(pattern)
    if one is not None:
        return one[1]
    if not _PLAIN.fullmatch(pattern):
        raise NotExact
    return _ESCAPE.sub(r"\1", pattern)


def _split(text: Value, pattern: Value) -> Value:
    require(text, STRING)
    between = _literal(constant_text(pattern))
    if isinstance(text.data, pa.Scalar):
        raise NotExact
    if len(text.data) > MOST_ROWS:
        raise NotExact("many rows, one by one")
    found = [None if item is None else item.split(between) for item in text.data.to_pylist()]
    return column(pa.array(found, pa.list_(pa.field("element", pa.string()))), Array(STRING))


FUNCTIONS: Functions = {"split": fixed(_split, 2)}
