"""Recursive models over ``edges (a INT, b INT, w INT)`` and ``sources (a INT)``.

Tables and models are written ``{name}``. A name that a query defines is no table's or model's, and no other part of the
query defines it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.recursion import reference
from tests.recursion.graphs import KINDS
from tests.recursion.reference import Answer, Edges, Sources

EDGES = "a INT, b INT, w INT"
SOURCES = "a INT"


@dataclass(frozen=True)
class Query:
    """A model, what it must answer, and for which graphs that is not too much.

    ``native``: DuckDB's own WITH RECURSIVE means the same. ``extra``: the quick tests go without it.
    """

    name: str
    answer: Callable[[Edges, Sources], Answer]
    sql: str
    suits: tuple[str, ...] = KINDS
    native: bool = False
    extra: bool = False


def queries(kind: str, extra: bool = True) -> list[Query]:
    """Those for a kind of graph, each after those that it reads."""
    return [query for query in QUERIES if kind in query.suits and (extra or not query.extra)]


_HOPS = """hop (x, n) AS (
  SELECT x, min(n) FROM (
    SELECT a AS x, 0 AS n FROM {sources}
    UNION ALL
    SELECT e.b, h.n + 1 FROM hop h JOIN {edges} e ON h.x = e.a
  ) t GROUP BY x
)"""
_COMPONENTS = """node (x) AS (SELECT a FROM {edges} UNION SELECT b FROM {edges}),
link (a, b) AS (SELECT a, b FROM {edges} UNION ALL SELECT b, a FROM {edges}),
component (x, label) AS (
  SELECT x, min(label) FROM (
    SELECT x, x AS label FROM node
    UNION ALL
    SELECT l.b, c.label FROM component c JOIN link l ON c.x = l.a
  ) t GROUP BY x
)"""
_COSTS = """WITH RECURSIVE cheapest (x, cost) AS (
  SELECT x, min(cost) FROM (
    SELECT a AS x, 0 AS cost FROM {sources}
    UNION ALL
    SELECT e.b, c.cost + e.w FROM cheapest c JOIN {edges} e ON c.x = e.a
  ) t GROUP BY x
)
SELECT x, cost FROM cheapest"""

QUERIES = (
    Query(
        "closure",
        reference.closure,
        """WITH RECURSIVE r (a, b) AS (
  SELECT a, b FROM {edges}
  UNION
  SELECT r.a, e.b FROM r JOIN {edges} e ON r.b = e.a
)
SELECT a, b FROM r""",
        native=True,
    ),
    Query(
        "closure_doubled",
        reference.closure,
        """WITH RECURSIVE r (a, b) AS (
  SELECT a, b FROM {edges}
  UNION
  SELECT r.a, s.b FROM r JOIN r s ON r.b = s.a
)
SELECT a, b FROM r""",
    ),
    Query(
        "closure_counts",
        reference.closure_counts,
        "SELECT a, count(*) AS n FROM {closure} GROUP BY a",
        extra=True,
    ),
    Query(
        "reach",
        reference.reach,
        """WITH RECURSIVE r (x) AS (
  SELECT a FROM {sources}
  UNION
  SELECT e.b FROM r JOIN {edges} e ON r.x = e.a
)
SELECT x FROM r""",
        native=True,
    ),
    Query(
        "reach_in",
        reference.reach,
        """WITH RECURSIVE r (x) AS (
  SELECT a FROM {sources}
  UNION
  SELECT e.b FROM {edges} e WHERE e.a IN (SELECT x FROM r)
)
SELECT x FROM r""",
        extra=True,
    ),
    Query("components", reference.components, f"WITH RECURSIVE {_COMPONENTS}\nSELECT x, label FROM component"),
    Query("hops", reference.hops, f"WITH RECURSIVE {_HOPS}\nSELECT x, n FROM hop"),
    Query("costs", reference.costs, _COSTS),
    Query(
        "near",
        reference.near,
        _COSTS.replace("ON c.x = e.a", "ON c.x = e.a WHERE c.cost + e.w <= 12"),
        extra=True,
    ),
    Query(
        "all_pairs",
        reference.all_pairs,
        """WITH RECURSIVE d (a, b, cost) AS (
  SELECT a, b, min(cost) FROM (
    SELECT a, b, w AS cost FROM {edges}
    UNION ALL
    SELECT p.a, q.b, p.cost + q.cost FROM d p JOIN d q ON p.b = q.a
  ) t GROUP BY a, b
)
SELECT a, b, cost FROM d""",
        extra=True,
    ),
    Query(
        "widest",
        reference.widest,
        """WITH RECURSIVE d (x, width) AS (
  SELECT x, max(width) FROM (
    SELECT a AS x, 99 AS width FROM {sources}
    UNION ALL
    SELECT e.b, least(d.width, e.w) FROM d JOIN {edges} e ON d.x = e.a WHERE e.w IS NOT NULL
  ) t GROUP BY x
)
SELECT x, width FROM d""",
        extra=True,
    ),
    Query(
        "same_generation",
        reference.same_generation,
        """WITH RECURSIVE sg (x, y) AS (
  SELECT e.b, f.b FROM {edges} e JOIN {edges} f ON e.a = f.a
  UNION
  SELECT e.b, f.b FROM sg JOIN {edges} e ON sg.x = e.a JOIN {edges} f ON sg.y = f.a
)
SELECT x, y FROM sg""",
        native=True,
    ),
    Query(
        "parity",
        reference.parity,
        """WITH RECURSIVE by_odd (a, b) AS (
  SELECT a, b FROM {edges}
  UNION
  SELECT v.a, e.b FROM by_even v JOIN {edges} e ON v.b = e.a
),
by_even (a, b) AS (
  SELECT DISTINCT o.a, e.b FROM by_odd o JOIN {edges} e ON o.b = e.a
)
SELECT 'odd' AS parity, a, b FROM by_odd UNION ALL SELECT 'even' AS parity, a, b FROM by_even""",
    ),
    Query(
        "paths",
        reference.paths,
        """WITH RECURSIVE p (a, b, depth) AS (
  SELECT a, b, 1 FROM {edges} WHERE a < b
  UNION ALL
  SELECT p.a, e.b, p.depth + 1 FROM p JOIN {edges} e ON p.b = e.a WHERE e.a < e.b AND p.depth < 6
)
SELECT a, b, depth FROM p""",
        native=True,
    ),
    Query(
        "walks",
        reference.walks,
        """WITH RECURSIVE p (b, depth) AS (
  SELECT b, 1 FROM {edges}
  UNION ALL
  SELECT e.b, p.depth + 1 FROM p JOIN {edges} e ON p.b = e.a WHERE p.depth < 4
)
SELECT depth, count(*) AS n FROM p GROUP BY depth""",
        suits=("random", "chain", "cyclic", "star"),
        native=True,
        extra=True,
    ),
    Query(
        "path_counts",
        reference.path_counts,
        """WITH RECURSIVE c (x, n) AS (
  SELECT x, sum(n) FROM (
    SELECT a AS x, CAST(1 AS BIGINT) AS n FROM {sources}
    UNION ALL
    SELECT e.b, c.n FROM c JOIN {edges} e ON c.x = e.a WHERE e.a < e.b
  ) t GROUP BY x
)
SELECT x, n FROM c""",
        extra=True,
    ),
    Query(
        "round_trip",
        reference.round_trip,
        f"""WITH RECURSIVE {_HOPS},
{_HOPS.replace("hop", "back").replace("e.b", "e.a").replace("h.x = e.a", "h.x = e.b")}
SELECT h.x, h.n AS n_there, b.n AS n_back FROM hop h JOIN back b ON h.x = b.x""",
    ),
    Query(
        "labelled_hops",
        reference.labelled_hops,
        f"""SELECT h.x, h.n, c.label
FROM (WITH RECURSIVE {_HOPS} SELECT x, n FROM hop) h
JOIN (WITH RECURSIVE {_COMPONENTS} SELECT x, label FROM component) c ON h.x = c.x""",
        extra=True,
    ),
    Query("big", reference.big, "SELECT a, b, min(w) AS w FROM {edges} WHERE w > 2 GROUP BY a, b"),
    Query("big_costs", reference.big_costs, _COSTS.replace("{edges}", "{big}")),
    Query(
        "last_source",
        reference.last_source,
        """WITH RECURSIVE r (x, source) AS (
  SELECT a, a FROM {sources}
  UNION
  SELECT e.b, coalesce(s.a, r.source) FROM r JOIN {edges} e ON r.x = e.a LEFT JOIN {sources} s ON e.b = s.a
)
SELECT x, source FROM r""",
        native=True,
        extra=True,
    ),
    Query(
        "spread",
        reference.spread,
        """WITH RECURSIVE r (x) AS (
  SELECT a FROM {sources}
  UNION
  SELECT e.b FROM r JOIN {edges} e ON r.x = e.a GROUP BY e.b HAVING count(*) > 1
)
SELECT x FROM r""",
        extra=True,
    ),
)
