"""The algebra of relations: each primitive with its law. An engine carries it out on rows of its own form.

Rows are columns by name, ``dd_diff`` mostly among them: how often a row comes (or goes, if it is negative). Every
primitive is of multisets: rows that are equal count as the sum of their diffs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from dbt_incremental_dd.core.types import Struct
from dbt_incremental_dd.differential.join import Equality
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Order

Kind = Literal["inner", "left", "semi", "anti"]
Side = Literal["left", "right"]
Pairs = Sequence[tuple[str, str]]
"""(name, source): columns under other names."""
Outputs = Sequence[tuple[str, Expr]]
"""(name, expression over the columns)."""
R = TypeVar("R")


@dataclass(frozen=True)
class Measure:
    """An aggregate of a group's values: a ``sum`` (0 if there are none), ``min`` or ``max``; all ignore NULL.
    ``dtype``: its SQL type."""

    name: str
    function: Literal["sum", "min", "max"]
    value: Expr
    dtype: str


@dataclass(frozen=True)
class Running:
    """The sum of ``value`` over all rows of the group before a row; with ``through``, over the row itself as well."""

    name: str
    value: Expr
    through: bool = False


@dataclass(frozen=True)
class Branch:
    """One of the rows that each row becomes: columns (name, source), and its diff."""

    columns: Pairs
    diff: Expr


class Engine(Protocol[R]):
    """``R``: its form of rows. The driver's engine raises NotExact wherever its answer might not be Spark's."""

    def select(self, rows: R, pairs: Pairs) -> R:
        """Columns under new names; others are left out."""

    def map(self, rows: R, outputs: Outputs) -> R:
        """Each row's values of the expressions."""

    def extend(self, rows: R, outputs: Outputs) -> R:
        """The rows with further columns."""

    def filter(self, rows: R, predicate: Expr) -> R:
        """The rows for which the predicate is true."""

    def union(self, parts: Sequence[R], *, is_little: bool) -> R:
        """The sum of relations with the same columns."""

    def consolidate(self, rows: R, diffs: Sequence[str]) -> R:
        """Sums the diffs of equal rows, and drops rows whose diffs are all 0."""

    def group_by(self, rows: R, keys: Sequence[str], measures: Sequence[Measure]) -> R:
        """Each group's keys and measures. Without keys there is one group, even of no rows."""

    def join(
        self,
        left: R,
        right: R,
        kind: Kind,
        equalities: Sequence[Equality],
        residual: Sequence[Expr],
        broadcast: Side | None,
    ) -> R:
        """``inner``: matching rows of both sides, diffs multiplied. ``left``: these, and rows of the left side without
        a match, with NULLs. ``semi`` and ``anti``: rows of the left side with a match, and without one. Except for
        ``inner``, the right side is a multiset. ``broadcast``: the side that is small."""

    def restrict(self, rows: R, keys: R, columns: Sequence[str], *, inside: bool, is_small: bool) -> R:
        """The rows whose columns are (``inside``) or are not among the keys; NULL equals NULL."""

    def lookup(self, rows: R, other: R, keys: Sequence[str], columns: Pairs, *, is_little: bool) -> R:
        """Each row, with columns (name, source) of the row of ``other`` that has the same keys, or NULLs if there is
        none. ``other`` has each key at most once. NULL equals NULL. ``is_little``: both are small, and the rows have
        each key at most once, too."""

    def running(self, rows: R, keys: Sequence[str], order: Sequence[Order], sums: Sequence[Running]) -> R:
        """The rows with running sums beside them, in that order within equal keys."""

    def window(self, rows: R, functions: Outputs) -> R:
        """The rows with values of window functions beside them; each row counts once, whatever its diff."""

    def generate(self, rows: R, call: str, outputs: Sequence[str], *, outer: bool) -> R:
        """For each row, the rows of a generator (``explode(...)``), with its columns under these names. ``outer``: a
        row for which the generator has none is kept."""

    def unpivot(self, rows: R, branches: Sequence[Branch]) -> R:
        """One row per branch for each row; rows with a diff of 0 are dropped."""

    def pack(self, rows: R, name: str, type: Struct, sources: Sequence[str]) -> R:
        """The rows with a struct in place of these columns, its fields in this order; without columns it is NULL."""

    def unpack(self, rows: R, name: str, columns: Sequence[str]) -> R:
        """The rows with a struct's first fields as columns in its place; the fields of a NULL struct are NULL."""

    def copies(self, rows: R, number: str) -> R:
        """Each row as often as its diff's absolute value, numbered from 1; diffs stay."""

    def aggregate(self, rows: R, keys: Sequence[str], outputs: Outputs) -> R:
        """Each group's keys and aggregates, of any kind. Each row counts once. Without keys there is one group, even
        of no rows."""

    def first(self, rows: R, order: Sequence[Order], count: int) -> R:
        """The first rows in that order, at most so many; each counts once, whatever its diff."""
