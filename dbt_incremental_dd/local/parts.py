"""The parts of a text that is split: Spark's ``split`` by a pattern that stands for itself."""

from __future__ import annotations

import re

import pyarrow as pa
from sqlglot import exp

from dbt_incremental_dd.core.types import INTEGER, STRING
from dbt_incremental_dd.local.evaluator import Evaluator
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import MOST_ROWS, column, constant_text, require

Parts = list[list[str] | None]
"""Of each row's text; None of NULL."""
_PLAIN = re.compile(r"[\w ,;:/#@&=~%<>-]+", re.ASCII)


def is_split(tree: exp.Expr) -> bool:
    """Whether it is a call of ``split`` without a limit."""
    return isinstance(tree, exp.Anonymous) and str(tree.this).lower() == "split" and len(tree.expressions) == 2


def parts(text: Value, pattern: Value) -> Parts:
    """Raises NotExact for a pattern that is no plain text."""
    require(text, STRING)
    between = constant_text(pattern)
    if isinstance(text.data, pa.Scalar) or not _PLAIN.fullmatch(between):
        raise NotExact
    return [None if item is None else item.split(between) for item in text.data.to_pylist()]


def part(tree: exp.Expr, place: int, evaluator: Evaluator) -> Value:
    """The part at a place, counted from 0, or from the end; NULL where there is none."""
    found = _of(tree, evaluator)
    chosen = [None if row is None or not -len(row) <= place < len(row) else row[place] for row in found]
    return column(pa.array(chosen, pa.string()), STRING)


def count(tree: exp.Expr, evaluator: Evaluator) -> Value:
    """How many parts there are; of NULL -1, as ``size`` says by default."""
    return column(pa.array([-1 if row is None else len(row) for row in _of(tree, evaluator)], pa.int32()), INTEGER)


def _of(tree: exp.Expr, evaluator: Evaluator) -> Parts:
    text, pattern = (evaluator.value(argument) for argument in tree.expressions)
    if evaluator.rows > MOST_ROWS:
        raise NotExact("many rows, one by one")
    return parts(text, pattern)
