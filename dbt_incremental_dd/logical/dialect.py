"""Spark's SQL dialect with every function call kept word for word.

The stock dialect parses known functions into common forms and prints them in its own spelling. An expression's
meaning is Spark's alone, so here a call ``f(x)`` is nothing but a name and its arguments.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot.dialects.spark import Spark

_OWN_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY", "POSITION")


class VerbatimSpark(Spark):
    """``sum(x)`` parses to ``Anonymous(this='sum')``; CAST, EXTRACT, CASE, ... keep their own syntax."""

    class Parser(Spark.Parser):
        FUNCTIONS: ClassVar = {}
        # Only calls whose arguments have a syntax of their own; the others are plain calls in Spark.
        FUNCTION_PARSERS: ClassVar = {
            name: parser for name, parser in Spark.Parser.FUNCTION_PARSERS.items() if name in _OWN_SYNTAX
        }
