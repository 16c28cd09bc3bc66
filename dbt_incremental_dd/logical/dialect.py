"""Spark's SQL dialect with every function call kept word for word.

The stock dialect parses known functions into common forms and prints them in its own spelling. An expression's
meaning is Spark's alone, so here a call ``f(x)`` is nothing but a name and its arguments, and no clause is rewritten.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark

_OWN_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY", "POSITION")
_REWRITTEN = (exp.Select, exp.From, exp.Pivot, exp.WithinGroup, exp.Array, exp.Table)


def _variant_path(generator: Spark.Generator, extract: exp.JSONExtract) -> str:
    """``v:a.b[0]['c d']``, as it was written."""
    path = ""
    for part in extract.expression.expressions:
        if isinstance(part, exp.JSONPathSubscript):
            path += "[*]" if isinstance(part.this, exp.JSONPathWildcard) else f"[{part.this}]"
        elif isinstance(part, exp.JSONPathKey):
            quoted = part.args.get("quoted") or not str(part.this).isidentifier()
            key = generator.sql(exp.to_identifier(str(part.this), quoted=True)) if quoted else str(part.this)
            path += f".{key}" if path else key
    return f"{generator.sql(extract, 'this')}:{path}"


class VerbatimSpark(Spark):
    """``sum(x)`` parses to ``Anonymous(this='sum')``; CAST, EXTRACT, CASE, ... keep their own syntax."""

    class Tokenizer(Spark.Tokenizer):
        # A doubled quote stands for itself, as a backslash before it does.
        STRING_ESCAPES: ClassVar = ["\\", "'", '"']

    class Parser(Spark.Parser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        # Only calls whose arguments have a syntax of their own; the others are plain calls in Spark.
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser for name, parser in Spark.Parser.FUNCTION_PARSERS.items() if name in _OWN_SYNTAX
        }
        ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}
        COLON_IS_VARIANT_EXTRACT = True

    class Generator(Spark.Generator):
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **{kind: print_ for kind, print_ in Spark.Generator.TRANSFORMS.items() if kind not in _REWRITTEN},
            exp.JSONExtract: _variant_path,
        }
