"""What a generator is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from sqlglot import exp

from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import Constants


class Generator(Protocol):
    """For each row, the rows that it makes. It raises NotExact for what is left to Spark."""

    def __call__(
        self, rows: Table, arguments: Sequence[exp.Expr], outputs: Sequence[str], constants: Constants, *, outer: bool
    ) -> Table:
        """The rows with columns ``outputs`` beside them. ``outer``: a row stays of which it makes none."""


Generators = Mapping[str, Generator]
MANY = "a generator of many rows"
