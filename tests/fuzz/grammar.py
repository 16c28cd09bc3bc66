"""A grammar of queries: every operator that is maintained, nested in one another.

Each relation has the columns ``k INT, v BIGINT, d DECIMAL(10,2), s STRING``, so that any can stand in for any other. Answers
do not depend on the order of rows: whatever is ordered, is ordered by all columns.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.fuzz.words import (
    AGGREGATES,
    CONDITIONS,
    CORRELATED,
    GROUP_CONDITIONS,
    JOIN_CONDITIONS,
    JOIN_SUBQUERIES,
    LITERALS,
    NUMBERS,
    PROJECTIONS,
    WINDOWS,
)

COLUMNS = "k, v, d, s"
DDL = "k INT, v BIGINT, d DECIMAL(10,2), s STRING"


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
        calls = self._rng.sample(AGGREGATES, self._rng.randint(1, 4))
        chosen = ", ".join(f"{call} AS a{i}" for i, call in enumerate(calls))
        group = f" GROUP BY {keys}" if keys else ""
        having = " HAVING count(*) > 1" if group and self._rng.random() < 0.3 else ""
        return f"SELECT {named}{chosen} FROM ({self.relation(depth)}){group}{having}"

    def _window_on_top(self, depth: int) -> str:
        calls = self._rng.sample(WINDOWS, self._rng.randint(1, 2))
        partition = self._rng.choice(["PARTITION BY k ", "PARTITION BY s ", ""])
        chosen = ", ".join(
            f"{call} OVER ({partition}{'' if frame is None else f'ORDER BY {COLUMNS}{frame}'}) AS w{i}"
            for i, (call, frame) in enumerate(calls)
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
                self._joined_by_name,
                self._joined_on_subquery,
                self._crossed,
                self._half_joined,
                self._set,
                self._distinct,
                self._grouped,
                self._grouped_by_subquery,
                self._top,
                self._limited,
                self._in,
                self._exists,
                self._scalar,
                self._correlated,
                self._inside,
                self._inside,
                self._lateral,
                self._pivoted,
                self._unpivoted,
                self._everything,
                self._by_time,
                self._exploded,
                self._values,
                self._qualified,
                self._comma_joined,
                self._comma_joined,
                self._literal,
                self._having,
                self._packed,
                self._in_arrays,
                self._in_maps,
                self._in_json,
                self._untyped,
            ]
        )(depth)

    def _table(self) -> str:
        return f"SELECT {COLUMNS} FROM {self._rng.choice(['{a}', '{b}'])}"

    def _filtered(self, depth: int) -> str:
        return f"SELECT {COLUMNS} FROM ({self.relation(depth - 1)}) WHERE {self._condition()}"

    def _projected(self, depth: int) -> str:
        chosen = ", ".join(f"{self._rng.choice(choices)} AS {name}" for name, choices in PROJECTIONS.items())
        return f"SELECT {chosen} FROM ({self.relation(depth - 1)})"

    def _join_word(self) -> str:
        side = self._rng.choice(["", "LEFT", "RIGHT", "FULL", "INNER", "LEFT OUTER", "RIGHT OUTER", "FULL OUTER"])
        return f"{side} JOIN"

    def _joined(self, depth: int) -> str:
        on = self._rng.choice(JOIN_CONDITIONS)
        left, right = self.relation(depth - 1), self.relation(depth - 2)
        return f"SELECT x.k, y.v, x.d, y.s FROM ({left}) x {self._join_word()} ({right}) y ON {on}"

    def _joined_by_name(self, depth: int) -> str:
        left, right = self.relation(depth - 1), self.relation(depth - 2)
        return f"SELECT k, x.v, y.d, s FROM ({left}) x {self._join_word()} ({right}) y USING (k, s)"

    def _joined_on_subquery(self, depth: int) -> str:
        left, right, inner = self.relation(depth - 1), self.relation(depth - 2), self.relation(depth - 2)
        on = self._rng.choice(JOIN_SUBQUERIES).format(inner=inner)
        return f"SELECT x.k, y.v, x.d, y.s FROM ({left}) x {self._join_word()} ({right}) y ON x.k = y.k AND ({on})"

    def _crossed(self, depth: int) -> str:
        few = f"SELECT k AS w FROM ({self.relation(depth - 2)}) ORDER BY {COLUMNS} LIMIT 2"
        return f"SELECT x.k, coalesce(x.v, y.w) AS v, x.d, x.s FROM ({self.relation(depth - 1)}) x, ({few}) y"

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

    def _grouped_by_subquery(self, depth: int) -> str:
        key = self._rng.choice(GROUP_CONDITIONS).format(inner=self.relation(depth - 2))
        k = self._rng.choice(["min(k)", f"CASE WHEN {key} THEN 1 ELSE 2 END"])
        return (
            f"SELECT {k} AS k, sum(v) AS v, min(d) AS d, max(s) AS s FROM ({self.relation(depth - 1)}) GROUP BY {key}"
        )

    def _top(self, depth: int) -> str:
        number = f"row_number() OVER (PARTITION BY k ORDER BY {COLUMNS})"
        inner = f"SELECT {COLUMNS}, {number} AS n FROM ({self.relation(depth - 1)})"
        return f"SELECT {COLUMNS} FROM ({inner}) WHERE n <= {self._rng.randint(1, 2)}"

    def _limited(self, depth: int) -> str:
        offset = self._rng.choice(["", " OFFSET 1"])
        order = self._rng.choice(["v DESC, k, d, s", "d, k DESC, v, s", COLUMNS])
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

    def _inside(self, depth: int) -> str:
        """Subqueries where a row's value is asked for."""
        inner = self.relation(depth - 2)
        correlated = self._rng.choice(CORRELATED).format(inner=inner)
        return self._rng.choice(
            [
                f"SELECT {COLUMNS} FROM ({self.relation(depth - 1)}) x WHERE {self._condition()} OR EXISTS ({correlated})",
                f"SELECT {COLUMNS} FROM ({self.relation(depth - 1)}) x WHERE v = 7 OR k NOT IN (SELECT k FROM ({inner}))",
                f"SELECT k, CASE WHEN x.s IN (SELECT s FROM ({inner})) THEN v END AS v, d, s FROM ({self.relation(depth - 1)}) x",
                f"SELECT k, CAST(({correlated}) AS BIGINT) AS v, d, s FROM ({self.relation(depth - 1)}) x",
            ]
        )

    def _lateral(self, depth: int) -> str:
        word = self._rng.choice(["JOIN", "LEFT JOIN", "LEFT OUTER JOIN"])
        inner = self._rng.choice(
            [
                "SELECT max(y.v) AS v, count(*) AS n FROM ({inner}) y WHERE y.k = x.k",
                "SELECT y.v, y.k AS n FROM ({inner}) y WHERE y.k <= x.k ORDER BY v DESC, n LIMIT 2",
                "SELECT y.v, count(*) AS n FROM ({inner}) y WHERE y.s = x.s GROUP BY y.v",
                "SELECT DISTINCT x.v + y.k AS v, y.k AS n FROM ({inner}) y WHERE y.k = x.k",
            ]
        ).format(inner=self.relation(depth - 2))
        return (
            f"SELECT CAST(z.n AS INT) AS k, CAST(z.v AS BIGINT) AS v, x.d, x.s "
            f"FROM ({self.relation(depth - 1)}) x {word} LATERAL ({inner}) z ON x.k > 0"
        )

    def _pivoted(self, depth: int) -> str:
        inner = f"SELECT {COLUMNS} FROM ({self.relation(depth - 1)})"
        call = self._rng.choice(["sum(v) AS v, max(d) AS d", "min(v) AS v, count(d) AS d"])
        return (
            f"SELECT k, coalesce(a_v, b_v) AS v, CAST(b_d AS DECIMAL(10,2)) AS d, CAST(a_d AS STRING) AS s "
            f"FROM ({inner}) PIVOT ({call} FOR s IN ('a' AS a, 'b' AS b))"
        )

    def _unpivoted(self, depth: int) -> str:
        inner = f"SELECT CAST(k AS BIGINT) AS k, v, d, s FROM ({self.relation(depth - 1)})"
        nulls = self._rng.choice(["", "INCLUDE NULLS "])
        return f"SELECT CAST(length(c) AS INT) AS k, v, d, s FROM ({inner}) UNPIVOT {nulls}(v FOR c IN (k, v AS vv))"

    def _everything(self, depth: int) -> str:
        """An aggregate without keys, as a relation."""
        calls = "CAST(count(*) AS INT) AS k, sum(v) AS v, max(d) AS d, min(s) AS s"
        return f"SELECT {calls} FROM ({self.relation(depth - 1)})"

    def _by_time(self, depth: int) -> str:
        """Rows that come and go as time passes: it is counted in milliseconds after 1,000."""
        condition = self._rng.choice(
            [
                "timestamp_millis(1000 + k) > dd_now()",
                "timestamp_millis(1000 + k) <= dd_now() AND v > 0",
                "dd_now() BETWEEN timestamp_millis(1000) AND timestamp_millis(1000 + k)",
                "unix_millis(dd_now()) % 2 = k % 2",
            ]
        )
        return f"SELECT {COLUMNS} FROM ({self.relation(depth - 1)}) WHERE {condition}"

    def _exploded(self, depth: int) -> str:
        outer = self._rng.choice(["", "OUTER "])
        columns, call = self._rng.choice(
            [
                ("e AS k, v, d, s", "explode(CASE WHEN v > 0 THEN array(k, 7) ELSE array() END) g AS e"),
                ("p AS k, e AS v, d, s", "posexplode(array(v, 7L)) g AS p, e"),
                (
                    "f AS k, v, d, e AS s",
                    "inline(array(struct(s AS e, k AS f), struct(upper(s) AS e, 1 AS f))) g AS e, f",
                ),
                ("CAST(v AS INT) AS k, v, d, e AS s", "json_tuple(concat('{\"n\": \"', s, '\"}'), 'n') g AS e"),
                ("k, CAST(e AS BIGINT) AS v, d, f AS s", "explode(map(k, s)) g AS e, f"),
            ]
        )
        where = "WHERE k IS NOT NULL" if "map" in call else ""
        return f"SELECT {columns} FROM (SELECT * FROM ({self.relation(depth - 1)}) {where}) LATERAL VIEW {outer}{call}"

    def _values(self, depth: int) -> str:
        values = "(VALUES (1, 'one'), (2, 'two'), (2, 'zwei')) AS y(k, s)"
        return (
            f"SELECT x.k, x.v, x.d, y.s FROM ({self.relation(depth - 1)}) x {self._join_word()} {values} ON x.k = y.k"
        )

    def _comma_joined(self, depth: int) -> str:
        """Three to five relations side by side, tied by WHERE, which also holds a subquery under OR, in any order."""
        count = self._rng.randint(3, 5)
        names = ["p", "q", "r", "t", "u"][:count]
        items = [f"({self.relation(depth - 2 if at == 0 else 0)}) {name}" for at, name in enumerate(names)]
        ties = [f"{self._rng.choice(names[:at])}.k = {name}.k AND {name}.v > 0" for at, name in enumerate(names) if at]
        one, other = self._rng.choice(names), self._rng.choice(names)
        inner = self.relation(depth - 3)
        subquery = self._rng.choice(
            [
                f"{one}.v {self._rng.choice(['IN', 'NOT IN'])} (SELECT v FROM ({inner}))",
                f"EXISTS (SELECT 1 FROM ({inner}) y WHERE y.k = {one}.k AND y.s = {other}.s)",
                f"NOT EXISTS (SELECT y.s FROM ({inner}) y WHERE y.k = {one}.k GROUP BY y.s HAVING count(*) > 1)",
                f"{one}.v > (SELECT max(y.v) FROM ({inner}) y WHERE y.k = {other}.k)",
            ]
        )
        conditions = [*ties, f"({other}.s > 'a' OR {subquery})"]
        self._rng.shuffle(conditions)
        return f"SELECT p.k, {one}.v, q.d, {other}.s FROM {', '.join(items)} WHERE {' AND '.join(conditions)}"

    def _literal(self, depth: int) -> str:
        return f"SELECT {COLUMNS} FROM ({self.relation(depth - 1)}) WHERE {self._rng.choice(LITERALS)}"

    def _having(self, depth: int) -> str:
        """HAVING of what is no boolean."""
        chosen = f"k, sum(v) AS v, max(d) AS d, min(s) AS s FROM ({self.relation(depth - 1)})"
        return f"SELECT {chosen} GROUP BY k HAVING {self._rng.choice(NUMBERS)}"

    def _two(self, columns: str, depth: int) -> tuple[str, str]:
        """Two queries of these columns."""
        inner, other = self.relation(depth - 1), self.relation(depth - 2)
        return f"SELECT {columns} FROM ({inner})", f"SELECT {columns} FROM ({other})"

    def _in_arrays(self, depth: int) -> str:
        """Arrays made, grouped, joined, collected and taken apart."""
        inner, other = self._two("k, v, d, s, array(s, lower(s), NULL) AS l", depth)
        return self._rng.choice(
            [
                f"SELECT max(k) AS k, min(v) AS v, sum(d) AS d, l[0] AS s FROM ({inner}) GROUP BY l",
                f"SELECT k, e.v AS v, e.d AS d, e.s AS s FROM (SELECT k, sort_array(collect_list(struct(v, d, s))) AS es "
                f"FROM ({inner}) GROUP BY k) LATERAL VIEW explode(es) g AS e",
                f"SELECT x.k, y.v, x.d, element_at(y.l, 2) AS s FROM ({inner}) x {self._join_word()} ({other}) y ON x.l = y.l",
                f"SELECT k, v, d, array_join(sort_array(collect_set(s)), ',') AS s FROM ({inner}) GROUP BY k, v, d",
                f"SELECT size(l) + k AS k, v, d, s FROM ({inner}) WHERE array_contains(l, 'a') OR exists(l, e -> e > s)",
                f"SELECT k, aggregated[0] AS v, d, s FROM (SELECT *, transform(filter(array(v, k, 1), e -> e > 0), "
                f"(e, i) -> e + i) AS aggregated FROM ({inner}))",
                f"SELECT k, v, d, s FROM (SELECT *, row_number() OVER (PARTITION BY l ORDER BY l DESC, {COLUMNS}) AS n "
                f"FROM ({inner})) WHERE n = 1",
                f"SELECT k, v, d, array_max(u) AS s FROM (SELECT k, v, d, array_union(l, array('b', s)) AS u FROM ({inner}))",
                f"SELECT DISTINCT k, v, d, concat_ws('-', array_distinct(l)) AS s FROM ({inner})",
            ]
        )

    def _in_maps(self, depth: int) -> str:
        """Maps made, compared and looked into."""
        inner, other = self._two("k, v, d, s, map('k', k, 's', length(s)) AS m", depth)
        return self._rng.choice(
            [
                f"SELECT m['k'] AS k, v, d, s FROM ({inner}) UNION SELECT element_at(m, 's'), v, d, s FROM ({other})",
                f"SELECT max(k) AS k, max(v) AS v, max(d) AS d, max(s) AS s FROM ({inner}) GROUP BY m",
                f"SELECT y AS k, v, d, x AS s FROM ({inner}) LATERAL VIEW explode(m) g AS x, y",
            ]
        )

    def _in_json(self, depth: int) -> str:
        """Texts that are JSON, written and read."""
        inner, _ = self._two("k, v, d, s, to_json(struct(k, v, s, array(s) AS l)) AS j", depth)
        return self._rng.choice(
            [
                f"SELECT CAST(get_json_object(j, '$.k') AS INT) AS k, v, d, get_json_object(j, '$.l[0]') AS s FROM ({inner})",
                f"SELECT p.k, p.v, d, p.l[0] AS s FROM (SELECT d, from_json(j, 'k INT, v BIGINT, l ARRAY<STRING>') AS p "
                f"FROM ({inner}))",
                f"SELECT k, CAST(a AS BIGINT) AS v, d, b AS s FROM ({inner}) LATERAL VIEW json_tuple(j, 'v', 'l') g AS a, b",
            ]
        )

    def _packed(self, depth: int) -> str:
        """A struct as one value, which may be NULL."""
        inner, other = self._two("k, struct(v, d, s) AS st", depth)
        through = self._rng.choice(
            [
                f"SELECT x.k, y.st FROM ({inner}) x {self._join_word()} ({other}) y ON x.k = y.k AND x.st.v > 0",
                f"SELECT x.k, (SELECT max(y.st) FROM ({other}) y WHERE y.k = x.k) AS st FROM ({inner}) x",
                f"({inner}) EXCEPT ALL ({other})",
                f"SELECT k, max(CASE WHEN k > 1 THEN st END) AS st FROM ({inner}) GROUP BY k",
                f"SELECT CAST(count(*) AS INT) AS k, st FROM ({inner}) GROUP BY st",
                f"SELECT k, lag(st) OVER (PARTITION BY k ORDER BY st) AS st FROM ({inner})",
                f"SELECT DISTINCT k, st FROM ({inner})",
            ]
        )
        return f"SELECT k, st.v AS v, st.d AS d, st.s AS s FROM ({through})"

    def _untyped(self, depth: int) -> str:
        """A column that is always NULL, and has no type."""
        inner, other = self._two(f"{COLUMNS}, NULL AS n", depth)
        through = self._rng.choice(
            [
                f"SELECT x.*, y.n AS m FROM ({inner}) x {self._join_word()} ({other}) y ON x.n <=> y.n AND x.k = y.k",
                f"({inner}) EXCEPT ({other})",
                f"SELECT k, n, sum(v) AS v, max(d) AS d, min(s) AS s FROM ({inner}) GROUP BY k, n",
                f"SELECT max(k) AS k, n, sum(v) AS v, max(d) AS d, min(s) AS s FROM ({inner}) GROUP BY n",
                f"SELECT k, n, sum(v) OVER (PARTITION BY n ORDER BY {COLUMNS}) AS v, d, s FROM ({inner})",
                f"SELECT DISTINCT * FROM ({inner})",
            ]
        )
        return f"SELECT coalesce(n, k) AS k, v, d, s FROM ({through})"

    def _condition(self) -> str:
        return self._rng.choice(CONDITIONS)
