"""SQL as text, laid out in lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from textwrap import indent

_WIDTH = 100


@dataclass(frozen=True)
class Term:
    """An expression and the name of its column. ``needs``: the joins whose tables it reads."""

    name: str
    sql: str
    needs: tuple[str, ...] = ()

    @property
    def column(self) -> str:
        """As it stands in a select list."""
        return f"{self.sql} AS {self.name}"


def select(
    columns: Iterable[str],
    source: str,
    *,
    where: Iterable[str] = (),
    group: str = "",
    having: str = "",
    order: str = "",
    limit: int = 0,
    distinct: bool = False,
) -> str:
    """A query of one block; clauses that are empty are left out."""
    lines = [f"SELECT{' DISTINCT' if distinct else ''}{_listed(columns)}", f"FROM {source}"]
    conditions = "\n  AND ".join(where)
    clauses = (("WHERE", conditions), ("GROUP BY", group), ("HAVING", having), ("ORDER BY", order))
    lines += [f"{word} {text}" for word, text in clauses if text]
    lines += [f"LIMIT {limit}"] if limit else []
    return "\n".join(lines)


def _listed(columns: Iterable[str]) -> str:
    listed = list(columns)
    short = ", ".join(listed)
    return f" {short}" if len(short) < _WIDTH else "\n  " + ",\n  ".join(listed)


def with_(queries: Mapping[str, str], body: str) -> str:
    """The body with common table expressions before it."""
    named = ",\n".join(f"{name} AS {nested(query)}" for name, query in queries.items())
    return f"WITH {named}\n{body}"


def nested(query: str) -> str:
    """A query in parentheses."""
    return f"(\n{indent(query, '  ')}\n)"


def combined(operator: str, queries: Iterable[str]) -> str:
    """Queries with a set operation between them, such as UNION ALL."""
    return f"\n{operator}\n".join(queries)


def names(terms: Iterable[Term], relation: str = "") -> str:
    """The terms' names with commas between them."""
    return ", ".join(f"{relation}.{term.name}" if relation else term.name for term in terms)


def alike(terms: Iterable[Term], left: str, right: str) -> str:
    """The condition that two relations have the same values of the terms."""
    return " AND ".join(f"{left}.{term.name} = {right}.{term.name}" for term in terms)
