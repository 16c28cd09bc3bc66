"""Names that a SELECT can see, and the columns that they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.logical.node import Id

CATALOG = "spark_catalog"
"""The session's own catalog, which a full name may begin with."""


class Ids:
    """Column ids, unique in a plan."""

    def __init__(self) -> None:
        self._next = count(1)

    def new(self) -> Id:
        """``c1``, ``c2``, ..."""
        return f"c{next(self._next)}"


@dataclass(frozen=True)
class Named:
    """A column under the name that a query has for it; the name is empty where only Spark knows it."""

    name: str
    id: Id


@dataclass(frozen=True)
class Source:
    """One item of FROM. ``qualifier``: its alias, or all parts of an unaliased table's name."""

    qualifier: tuple[str, ...]
    columns: tuple[Named, ...]

    def answers_to(self, names: tuple[str, ...]) -> bool:
        """Whether a qualifier of a column means this source."""
        own = tuple(part.lower() for part in self.qualifier)
        if len(own) == 2 and len(names) == 3 and names[0] == CATALOG:
            names = names[1:]
        return bool(own) and len(names) <= len(own) and own[-len(names) :] == names

    def keys_first(self, keys: Sequence[Id]) -> Source:
        """With the columns of USING in front, where ``t.*`` has them."""
        first = tuple(c for key in keys for c in self.columns if c.id == key)
        return replace(self, columns=first + tuple(c for c in self.columns if c.id not in keys))


@dataclass(frozen=True)
class Scope:
    """``visible``: the columns of ``*`` in order, which unqualified names are looked up in.

    ``carried``: the columns of the outside's values, where what is in scope depends on them.
    """

    sources: tuple[Source, ...] = ()
    visible: tuple[Named, ...] = field(default=())
    carried: tuple[Id, ...] = ()

    def __add__(self, other: Scope) -> Scope:
        return Scope(self.sources + other.sources, self.visible + other.visible, self.carried or other.carried)

    @staticmethod
    def of(source: Source, carried: tuple[Id, ...] = ()) -> Scope:
        """A scope of one source."""
        return Scope((source,), source.columns, carried)

    @property
    def ids(self) -> tuple[Id, ...]:
        """All columns that can be named."""
        named = [column for source in self.sources for column in source.columns]
        return tuple(dict.fromkeys(column.id for column in (*self.visible, *named)))

    def find(self, parts: tuple[str, ...]) -> tuple[Id, tuple[str, ...]] | None:
        """The column that a dotted name means, and the struct fields that follow it; None where there is none.

        A table's name comes before a column's, as in Spark.
        """
        lowered = tuple(part.lower() for part in parts)
        for length in range(len(parts) - 1, 0, -1):
            sources = [source for source in self.sources if source.answers_to(lowered[:length])]
            ids = [c.id for source in sources for c in source.columns if c.name.lower() == lowered[length]]
            if ids:
                return _single(ids, parts), parts[length + 1 :]
        ids = [column.id for column in self.visible if column.name.lower() == lowered[0]]
        return (_single(ids, parts), parts[1:]) if ids else None

    def star(self, qualifier: tuple[str, ...]) -> tuple[Named, ...] | None:
        """The columns of ``*`` or ``t.*``; None where there is no such source."""
        if not qualifier:
            return self.visible
        lowered = tuple(part.lower() for part in qualifier)
        found = next((source for source in self.sources if source.answers_to(lowered)), None)
        return found.columns if found else None


def _single(ids: Iterable[Id], parts: tuple[str, ...]) -> Id:
    distinct = list(dict.fromkeys(ids))
    if len(distinct) > 1:
        raise UnsupportedSQL(f"column {'.'.join(parts)} is ambiguous", "Qualify it by its table's alias.")
    return distinct[0]
