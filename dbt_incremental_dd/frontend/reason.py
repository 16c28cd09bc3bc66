"""What errors and reasons say of a query: in the user's words, without names of the plan's own."""

from __future__ import annotations

import logging
import re

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt_incremental_dd.core.foreign import reason
from dbt_incremental_dd.logical.dialect import VerbatimSpark

_LOG = logging.getLogger(__name__)
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m|\[4m|\[0m")
_OWN_COLUMN = re.compile(r"`?\b(?:[cv]\d+|dd_\w+)(?:_[a-z]+)?\b`?(?!\()")
_STATE = re.compile(r"\s*SQLSTATE: \w+\.?")
_QUOTED = re.compile(
    r"""\b[rR]'[^']*' | \b[rR]"[^"]*" | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `[^`]*`
    | --[^\n]* | /\*.*?\*/""",
    re.DOTALL | re.VERBOSE,
)
_LONGEST = 160


def readable(error: BaseException) -> str:
    """Why a plan could not be made, in a line that is never empty. The whole error is logged at level DEBUG."""
    _LOG.debug("A plan could not be made: %s", error, exc_info=error)
    if isinstance(error, SqlglotError):
        return "a part of it is not understood"
    if not type(error).__module__.startswith("pyspark"):
        return f"an internal error, {type(error).__name__}"
    text = _STATE.sub("", _ESCAPES.sub("", reason(error)))
    return _OWN_COLUMN.sub("a column", text)[:_LONGEST].strip()


def named(tree: exp.Expr) -> str:
    """A construct by the word that it begins with: ``LATERAL``, ``range()``."""
    if isinstance(tree, exp.Anonymous):
        return f"{tree.this}()"
    words = re.findall(r"\w+", tree.sql(dialect=VerbatimSpark, comments=False))
    return words[0].upper() if words else "an empty part"


def unclosed(sql: str) -> int | None:
    """Where a quote or a comment begins that has no end; None where all are closed."""
    for found in re.finditer(r"['\"`]|/\*", _QUOTED.sub(lambda part: " " * len(part[0]), sql)):
        return found.start()
    return None
