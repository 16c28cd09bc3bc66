"""The meaning of WITH RECURSIVE word for word: bindings start empty, and are evaluated in order until nothing changes.

SQLite evaluates each binding by itself, over tables that hold what the others are at that moment.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import sqlglot
from sqlglot import exp

from tests.recursion.graphs import Edge, Node
from tests.recursion.queries import Query
from tests.recursion.reference import Answer

_ROUNDS = 200
"""More of them than any query here takes."""


class Binding(NamedTuple):
    """A name that WITH RECURSIVE defines, its columns, and the query that it stands for."""

    name: str
    columns: tuple[str, ...]
    sql: str


class Iterated:
    """The two tables, and answers over them."""

    def __init__(self) -> None:
        self._sqlite = sqlite3.connect(":memory:", isolation_level=None, cached_statements=1000)

    def load(self, edges: Iterable[Edge], sources: Iterable[Node]) -> None:
        """Other rows than before."""
        self._store("edges", ("a", "b", "w"), list(edges))
        self._store("sources", ("a",), [(a,) for a in sources])

    def answer(self, query: Query) -> Answer:
        """What it is over these rows; other queries can read it from now on."""
        blocks, sql = _taken_apart(query.sql)
        for block in blocks:
            self._iterate(block)
        cursor = self._sqlite.execute(sql)
        names, rows = tuple(column[0] for column in cursor.description), cursor.fetchall()
        self._store(query.name, names, rows)
        return Counter(rows)

    def _iterate(self, block: Sequence[Binding]) -> None:
        """Leaves each binding as a table."""
        now: dict[str, Answer] = {}
        for binding in block:
            self._store(binding.name, binding.columns, [])
            now[binding.name] = Counter()
        for _ in range(_ROUNDS):
            before = dict(now)
            for binding in block:
                rows = self._sqlite.execute(binding.sql).fetchall()
                now[binding.name] = Counter(rows)
                self._store(binding.name, binding.columns, rows)
            if now == before:
                return
        raise AssertionError(f"it goes on for {_ROUNDS} rounds: {block}")

    def _store(self, name: str, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> None:
        self._sqlite.execute(f"DROP TABLE IF EXISTS {name}")
        self._sqlite.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        self._sqlite.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)


def plain(sql: str) -> str:
    """The SQL with tables and models under their own names."""
    return sql.replace("{", "").replace("}", "")


@cache
def _taken_apart(sql: str) -> tuple[list[list[Binding]], str]:
    """The recursive blocks of a query, inner ones first, and the query without them."""
    tree = sqlglot.parse_one(plain(sql), read="spark")
    found = []
    for block in reversed([block for block in tree.find_all(exp.With) if block.recursive]):
        found.append([_binding(cte) for cte in block.expressions])
        block.pop()
    return found, tree.sql(dialect="sqlite")


def _binding(cte: exp.CTE) -> Binding:
    columns = tuple(column.name for column in cte.args["alias"].columns)
    return Binding(cte.alias, columns, cte.this.sql(dialect="sqlite"))
