"""What the parts of an expression are evaluated by."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from dbt_incremental_dd.local.value import Value


class Evaluator(Protocol):
    """Evaluates expressions over the rows of one table. All raise NotExact."""

    @property
    def rows(self) -> int:
        """How many there are."""

    @property
    def zone(self) -> str:
        """The session's time zone."""

    def value(self, tree: exp.Expr) -> Value:
        """The expression's value for each row, or one for all."""

    def constant(self, tree: exp.Expr) -> Value | None:
        """The value of an expression without columns; None where it is evaluated like others."""

    def split(self, holds: pa.ChunkedArray) -> tuple[Evaluator, Evaluator]:
        """Over the rows for which a condition holds, and over the others."""
