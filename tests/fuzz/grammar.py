"""A grammar of queries: every operator that is maintained, nested in one another.

Each relation has the columns ``k INT, v BIGINT, d DECIMAL(10,2), s STRING``, so that any can stand in for any other. Answers
do not depend on the order of rows: whatever is ordered, is ordered by all columns.
"""

from __future__ import annotations

import random
from collections.abc import Callable

COLUMNS = "k, v, d, s"
DDL = "k INT, v BIGINT, d DECIMAL(10,2), s STRING"
_ALL = "k, v, d, s"


class Grammar:
    """Queries from one source of chance."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._names = 0

    def query(self, depth: int) -> str:
        """A whole query; its columns have names that differ."""
        shapes: list[Callable[[int], str]] = [self._whole, self._aggregate_on_top, self._window_on_top, self._with]
        return self._pick(shapes)(depth)

    def _pick(self, choices: list[Callable[[int], str]]) -> Callable[[int], str]:
        return self._rng.choice(choices)

    def _name(self) -> str:
        self._names += 1
        return f"r{self._names}"

    def _whole(self, depth: int) -> str:
        return f"SELECT * FROM ({self.relation(depth)})"

    def _with(self, depth: int) -> str:
        x, y = self._name(), self._name()
        return (
            f"WITH {x} AS ({self.relation(depth - 1)}), {y} AS (SELECT * FROM {x} WHERE {self._condition()}) "
            f"SELECT p.k, p.v, q.d, q.s FROM {x} p {self._join_word()} {y} q ON p.k = q.k"
        )

    def _aggregate_on_top(self, depth: int) -> str:
        keys = self._rng.choice(["k", "s", "k, s", "", "ROLLUP (k, s)", "CUBE (k, s)", "GROUPING SETS ((k), (s), ())"])
        named = {"": "", "k": "k, ", "s": "s, "}.get(keys, "k, s, ")
        calls = self._rng.sample(_AGGREGATES, self._rng.randint(1, 4))
        chosen = ", ".join(f"{call} AS a{i}" for i, call in enumerate(calls))
        group = f" GROUP BY {keys}" if keys else ""
        having = " HAVING count(*) > 1" if group and self._rng.random() < 0.3 else ""
        return f"SELECT {named}{chosen} FROM ({self.relation(depth)}){group}{having}"

    def _window_on_top(self, depth: int) -> str:
        calls = self._rng.sample(_WINDOWS, self._rng.randint(1, 2))
        partition = self._rng.choice(["PARTITION BY k ", "PARTITION BY s ", ""])
        chosen = ", ".join(
            f"{call} OVER ({partition}ORDER BY {_ALL}{frame}) AS w{i}" for i, (call, frame) in enumerate(calls)
        )
        return f"SELECT {COLUMNS}, {chosen} FROM ({self.relation(depth)})"

    def relation(self, depth: int) -> str:
        """A query with the four columns."""
        if depth <= 0:
            return self._table()
        return self._pick(
            [
                self._filtered,
                self._projected,
                self._joined,
                self._joined,
                self._half_joined,
                self._set,
                self._distinct,
                self._grouped,
                self._top,
                self._limited,
                self._in,
                self._exists,
                self._scalar,
                self._correlated,
                self._exploded,
                self._values,
                self._qualified,
            ]
        )(depth)

    def _table(self) -> str:
        return f"SELECT {COLUMNS} FROM {self._rng.choice(['{a}', '{b}'])}"

    def _filtered(self, depth: int) -> str:
        return f"SELECT {COLUMNS} FROM ({self.relation(depth - 1)}) WHERE {self._condition()}"

    def _projected(self, depth: int) -> str:
        k = self._rng.choice(["k", "CAST(k + 1 AS INT)", "CAST(v % 3 AS INT)", "CASE WHEN v > 0 THEN k END"])
        v = self._rng.choice(["v", "coalesce(v, CAST(k AS BIGINT))", "v * 2", "CAST(length(s) AS BIGINT)"])
        d = self._rng.choice(["d", "CAST(d / 2 AS DECIMAL(10,2))", "CAST(k AS DECIMAL(10,2))"])
        s = self._rng.choice(["s", "upper(s)", "concat(s, CAST(k AS STRING))", "nullif(s, 'a')"])
        return f"SELECT {k} AS k, {v} AS v, {d} AS d, {s} AS s FROM ({self.relation(depth - 1)})"

    def _join_word(self) -> str:
        return self._rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])

    def _joined(self, depth: int) -> str:
        on = self._rng.choice(
            [
                "x.k = y.k",
                "x.k = y.k AND x.s = y.s",
                "x.k <=> y.k AND x.v = y.v",
                "x.k = y.k AND x.v < y.v",
                "x.s = y.s",
            ]
        )
        left, right = self.relation(depth - 1), self.relation(depth - 2)
        return f"SELECT x.k, y.v, x.d, y.s FROM ({left}) x {self._join_word()} ({right}) y ON {on}"

    def _half_joined(self, depth: int) -> str:
        kind = self._rng.choice(["SEMI", "ANTI"])
        on = self._rng.choice(["x.k = y.k", "x.k = y.k AND x.v <> y.v", "x.s <=> y.s"])
        return f"SELECT {COLUMNS} FROM ({self.relation(depth - 1)}) x LEFT {kind} JOIN ({self.relation(depth - 2)}) y ON {on}"

    def _set(self, depth: int) -> str:
        word = self._rng.choice(["UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"])
        return f"({self.relation(depth - 1)}) {word} ({self.relation(depth - 2)})"

    def _distinct(self, depth: int) -> str:
        return f"SELECT DISTINCT {COLUMNS} FROM ({self.relation(depth - 1)})"

    def _grouped(self, depth: int) -> str:
        key, other = self._rng.choice([("k", "max(s)"), ("k", "min(s)")])
        v = self._rng.choice(["sum(v)", "count(*)", "max(v)", "count(DISTINCT v)"])
        d = self._rng.choice(["CAST(sum(d) AS DECIMAL(10,2))", "min(d)", "CAST(avg(d) AS DECIMAL(10,2))"])
        return f"SELECT {key}, {v} AS v, {d} AS d, {other} AS s FROM ({self.relation(depth - 1)}) GROUP BY {key}"

    def _top(self, depth: int) -> str:
        number = f"row_number() OVER (PARTITION BY k ORDER BY {_ALL})"
        inner = f"SELECT {COLUMNS}, {number} AS n FROM ({self.relation(depth - 1)})"
        return f"SELECT {COLUMNS} FROM ({inner}) WHERE n <= {self._rng.randint(1, 2)}"

    def _limited(self, depth: int) -> str:
        offset = self._rng.choice(["", " OFFSET 1"])
        order = self._rng.choice(["v DESC, k, d, s", "d, k DESC, v, s", _ALL])
        return f"SELECT {COLUMNS} FROM ({self.relation(depth - 1)}) ORDER BY {order} LIMIT {self._rng.randint(1, 4)}{offset}"

    def _qualified(self, depth: int) -> str:
        inner = self.relation(depth - 1)
        return f"SELECT {COLUMNS} FROM ({inner}) QUALIFY rank() OVER (PARTITION BY s ORDER BY v DESC, k) <= 2"

    def _in(self, depth: int) -> str:
        word = self._rng.choice(["IN", "NOT IN"])
        column = self._rng.choice(["k", "v"])
        return (
            f"SELECT {COLUMNS} FROM ({self.relation(depth - 1)}) "
            f"WHERE {column} {word} (SELECT {column} FROM ({self.relation(depth - 2)}))"
        )

    def _exists(self, depth: int) -> str:
        word = self._rng.choice(["EXISTS", "NOT EXISTS"])
        on = self._rng.choice(["y.k = x.k", "y.k = x.k AND y.v > x.v"])
        inner = f"SELECT 1 FROM ({self.relation(depth - 2)}) y WHERE {on}"
        return f"SELECT {COLUMNS} FROM ({self.relation(depth - 1)}) x WHERE {word} ({inner})"

    def _scalar(self, depth: int) -> str:
        call = self._rng.choice(["max(v)", "count(*)", "sum(v)"])
        inner = f"SELECT {call} FROM ({self.relation(depth - 2)})"
        return f"SELECT k, v - ({inner}) AS v, d, s FROM ({self.relation(depth - 1)})"

    def _correlated(self, depth: int) -> str:
        call = self._rng.choice(["max(y.v)", "count(*)", "min(y.v)"])
        inner = f"SELECT {call} FROM ({self.relation(depth - 2)}) y WHERE y.k = x.k"
        return f"SELECT {COLUMNS} FROM ({self.relation(depth - 1)}) x WHERE v < ({inner})"

    def _exploded(self, depth: int) -> str:
        outer = self._rng.choice(["", "OUTER "])
        call = "explode(CASE WHEN v > 0 THEN array(k, 7) ELSE array() END)"
        return f"SELECT e AS k, v, d, s FROM ({self.relation(depth - 1)}) LATERAL VIEW {outer}{call} g AS e"

    def _values(self, depth: int) -> str:
        values = "(VALUES (1, 'one'), (2, 'two'), (2, 'zwei')) AS y(k, s)"
        return (
            f"SELECT x.k, x.v, x.d, y.s FROM ({self.relation(depth - 1)}) x {self._join_word()} {values} ON x.k = y.k"
        )

    def _condition(self) -> str:
        return self._rng.choice(
            [
                "k > 1",
                "v IS NOT NULL",
                "s IN ('a', '')",
                "coalesce(d, 0) >= 0",
                "k <=> NULL",
                "v % 2 = 0",
                "k = 1 OR s > 'a'",
            ]
        )


_AGGREGATES = [
    "count(*)", "count(v)", "sum(v)", "sum(d)", "avg(d)", "avg(v)", "min(s)", "max(v)", "min(d)", "max(s)",
    "count(DISTINCT s)", "count(DISTINCT k, v)", "sum(DISTINCT v)", "sum(v) FILTER (WHERE k > 1)", "bool_or(v > 0)",
    "every(k > 0)", "count_if(v > 1)", "percentile(v, 0.5)", "sort_array(collect_set(s))", "max(v) - min(v)",
    "sum(v) + count(*)", "approx_count_distinct(k)", "bit_xor(v)", "max_by(k, struct(v, d, s, k))",
]  # fmt: skip
_WINDOWS = [
    ("row_number()", ""), ("rank()", ""), ("dense_rank()", ""), ("lag(v)", ""), ("lead(s, 2)", ""), ("ntile(2)", ""),
    ("sum(v)", ""), ("max(d)", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"), ("count(*)", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
    ("first_value(k)", ""), ("sum(v)", " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"),
]  # fmt: skip
