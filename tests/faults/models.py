"""Models of many kinds over the sources, and over each other."""

from __future__ import annotations

from dbt_incremental_dd.history.history import History

MODELS = {
    "filtered": "SELECT id, k, v FROM s.visits WHERE v > 10",
    "everything": "SELECT id, k, v FROM s.visits UNION ALL SELECT id, k, v FROM s.lines",
    "sums": "SELECT k, count(*) AS n, sum(v) AS v, avg(v) AS mean FROM s.orders GROUP BY k",
    "extremes": "SELECT k, min(v) AS low, max(v) AS high, count(DISTINCT v) AS kinds FROM s.accounts GROUP BY k",
    "joined": "SELECT a.id, a.k, o.v FROM s.accounts a JOIN s.orders o ON a.id = o.id AND o.v > 10",
    "outer_joined": "SELECT p.id, p.v, o.v AS w FROM s.prices p LEFT JOIN s.orders o ON p.id = o.id",
    "without": "SELECT id, k FROM s.moves m WHERE NOT EXISTS (SELECT 1 FROM s.prices p WHERE p.k = m.k AND p.v > 95)",
    "latest": "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY id DESC) AS place FROM m.everything)"
    " WHERE place <= 2",
    "running": "SELECT id, k, sum(v) OVER (PARTITION BY k ORDER BY id) AS total FROM s.lines",
    "first_ones": "SELECT id, v FROM s.prices ORDER BY v DESC, id LIMIT 7",
    "kinds": "SELECT DISTINCT k, v % 5 AS rest FROM m.everything",
    "ranked": "SELECT k, n, rank() OVER (ORDER BY n DESC, k) AS place FROM m.sums",
    "overall": "SELECT count(*) AS n, sum(v) AS v FROM m.everything HAVING count(*) > 0",
}
"""The SQL by name; a model is ``m.<name>``, and is after what it reads."""
OUTPUTS = {"filtered": "delta", "joined": "iceberg", "sums": "delta"}
"""The formats of open tables, by the model that has one."""
HISTORIES = {
    "versions": ("sums", "SELECT * FROM m.sums", History(key=("k",))),
    "row_versions": ("latest", "SELECT * FROM m.latest", History()),
}
"""Histories by name: the model of which one is, the SQL, and the settings."""
