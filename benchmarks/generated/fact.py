"""A star: what can be counted, what it is grouped by, and what has to be joined for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.generated.draw import Draw
from benchmarks.generated.sql import Term, select


@dataclass(frozen=True)
class Filter:
    """Conditions of one kind. ``needs``: the joins whose tables they read. ``is_dated``: they name a period."""

    make: Callable[[Draw], str]
    needs: tuple[str, ...] = ()
    is_dated: bool = False


@dataclass(frozen=True)
class Fact:
    """A table and what can be joined to it.

    ``joins``: by name, the join that has to stand before it, or none, and its text. ``pivots``: dimensions with
    literals of their values. ``counted``: keys whose distinct values can be counted. ``entities``: keys of many values,
    each with what else is known of one.
    """

    table: str
    dates: tuple[Term, ...]
    joins: Mapping[str, tuple[str, str]]
    dimensions: tuple[Term, ...]
    amounts: tuple[Term, ...]
    counted: tuple[Term, ...]
    entities: tuple[tuple[Term, ...], ...]
    filters: tuple[Filter, ...]
    pivots: tuple[tuple[Term, tuple[str, ...]], ...]

    def source(self, needs: Iterable[str]) -> str:
        """The table with all joins that are needed."""
        wanted: set[str] = set()
        for name in needs:
            while name:
                wanted.add(name)
                name = self.joins[name][0]
        return "\n  ".join([self.table, *(text for name, (_, text) in self.joins.items() if text and name in wanted)])

    def measures(self, draw: Draw, least: int, most: int) -> list[Term]:
        """Aggregates, each with another name; the first one is a sum."""
        amounts = draw.some(self.amounts, least, most)
        found = [Term(f"total_{amounts[0].name}", f"sum({amounts[0].sql})", amounts[0].needs)]
        for amount in amounts[1:]:
            word, call = draw.one((("total", "sum"), ("mean", "avg"), ("most", "max"), ("least", "min")))
            found.append(Term(f"{word}_{amount.name}", f"{call}({amount.sql})", amount.needs))
        if draw.maybe():
            found.append(Term("row_count", "count(*)"))
        if draw.maybe(0.4):
            key = draw.one(self.counted)
            found.append(Term(f"distinct_{key.name}", f"count(DISTINCT {key.sql})", key.needs))
        return found

    def where(self, draw: Draw, least: int, most: int, *, dated: bool = True) -> list[Term]:
        """Conditions of different kinds, without such that name a period unless ``dated``."""
        kinds = [kind for kind in self.filters if dated or not kind.is_dated]
        return [Term("", kind.make(draw), kind.needs) for kind in draw.some(kinds, least, most)]

    def select(
        self,
        columns: Sequence[Term],
        where: Sequence[Term] = (),
        *,
        group: str = "",
        having: str = "",
        needs: tuple[str, ...] = (),
    ) -> str:
        """A query over the table and all that the terms read."""
        needed = [need for term in (*columns, *where) for need in term.needs]
        return select(
            [term.column for term in columns],
            self.source([*needed, *needs]),
            where=[term.sql for term in where],
            group=group,
            having=having,
        )

    def totals(
        self, draw: Draw, keys: Sequence[Term], measures: Sequence[Term], where: Sequence[Term] = (), having: str = ""
    ) -> str:
        """The measures by the keys, which are written as expressions, as names, as numbers or not at all."""
        group = draw.one(
            (
                ", ".join(key.sql for key in keys),
                ", ".join(key.name for key in keys),
                ", ".join(str(i + 1) for i in range(len(keys))),
                "ALL",
            )
        )
        return self.select([*keys, *measures], where, group=group, having=having)
