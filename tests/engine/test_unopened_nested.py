"""Models over arrays, maps and structs ask Spark for nothing after their first run, and are exact."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.engine import unasked
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODELS = {
    "flat_of_nested": "SELECT id, name FROM {ev}",
    "star": "SELECT * FROM {ev}",
    "field": "SELECT id, addr.city AS city, addr.zip AS zip FROM {ev}",
    "item": "SELECT id, tags[0] AS first_tag, size(tags) AS n, array_contains(tags, 'a') AS has FROM {ev}",
    "exploded": "SELECT id, t FROM {ev} LATERAL VIEW explode(tags) x AS t",
    "tag_counts": "SELECT t, count(*) AS n FROM (SELECT explode(tags) AS t FROM {ev}) GROUP BY t",
    "items": "SELECT id, i.sku, i.qty * i.price AS total FROM (SELECT id, explode(items) AS i FROM {ev})",
    "posexp": "SELECT id, p, t FROM {ev} LATERAL VIEW OUTER posexplode(tags) x AS p, t",
    "props": "SELECT id, props['k1'] AS k1, map_keys(props) AS keys FROM {ev}",
    "collected": "SELECT name, sort_array(collect_list(id)) AS ids FROM {ev} GROUP BY name",
    "struct_made": "SELECT id, struct(id, name) AS s, named_struct('a', id, 'b', kind) AS n FROM {ev}",
    "array_made": "SELECT id, array(name, kind) AS a FROM {ev}",
    "max_struct": "SELECT name, max(struct(id, kind)).kind AS latest FROM {ev} GROUP BY name",
    "win": """SELECT id, lag(tags) OVER (PARTITION BY name ORDER BY id) AS l, first_value(addr) OVER (PARTITION BY
      addr ORDER BY id) AS f, max(tags) OVER (PARTITION BY kind) AS m, row_number() OVER (ORDER BY tags,
      id) AS rn, count(props) OVER (PARTITION BY items) AS c, last(props, true) OVER (PARTITION BY name
      ORDER BY id) AS lp FROM {ev}""",
    "maxes": """SELECT kind, max(tags) AS m, min(addr) AS a, count(DISTINCT tags) AS d, max_by(tags, id) AS mb FROM
      {ev} GROUP BY kind""",
    "grouped": "SELECT tags, addr, count(*) AS n, sum(id) AS s FROM {ev} GROUP BY tags, addr",
    "left": """SELECT d.kind, e.id, e.tags, e.props, e.addr FROM {dim} d LEFT JOIN {ev} e ON e.kind = d.kind AND
      e.addr.city = 'Rome'""",
    "union": """SELECT id, tags FROM {ev} UNION ALL SELECT id, array('x') FROM {ev} UNION SELECT id + 1, array(name,
      kind) FROM {ev}""",
    "except": "SELECT tags FROM {ev} EXCEPT SELECT array('a')",
    "ordered": "SELECT id, tags FROM {ev} ORDER BY tags DESC, id LIMIT 4",
    "fields": "SELECT id, k, v FROM {ev} LATERAL VIEW explode(props) y AS k, v",
    "inlined": "SELECT id, sku, qty FROM {ev} LATERAL VIEW inline(items) y AS sku, qty, price",
    "nested_case": """SELECT id, CASE WHEN kind = 'x' THEN tags END AS c, coalesce(tags, array('q')) AS t, if(kind = 'y',
      addr, NULL) AS a FROM {ev}""",
    "agg_struct": "SELECT name, collect_list(struct(id, kind)) AS l, max(struct(ts, id)) AS m FROM {ev} GROUP BY name",
    "functions": """SELECT id, array_join(tags, '|', '?') AS j, sort_array(tags, false) AS s, array_sort(tags) AS t,
      array_distinct(tags) AS d, array_max(tags) AS mx, element_at(items, -1).sku AS e, map_values(props)
      AS mv, element_at(props, 'k2') AS k2, cardinality(items) AS c, tags[id % 3] AS tt FROM {ev}""",
    "latest": """SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY name ORDER BY ts DESC, id DESC) AS rn FROM
      {ev}) WHERE rn = 1""",
    "distinct_arr": "SELECT DISTINCT tags FROM {ev}",
    "join_nested": "SELECT e.id, e.tags, d.label FROM {ev} e JOIN {dim} d ON d.kind = e.kind",
    "qualify": "SELECT id, kind, tags FROM {ev} QUALIFY row_number() OVER (PARTITION BY kind ORDER BY id) = 1",
    "split_all": "SELECT id, split(name, '-') AS parts FROM {ev}",
    "dedupe": "SELECT DISTINCT kind, addr.city FROM {ev}",
}


def test_nobody_asks_spark(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(3)
    tables = {
        "ev": Table(
            "id INT, name STRING, kind STRING, tags ARRAY<STRING>, props MAP<STRING, STRING>, "
            "items ARRAY<STRUCT<sku: STRING, qty: INT, price: DECIMAL(8,2)>>, "
            "addr STRUCT<city: STRING, zip: INT>, ts TIMESTAMP"
        ),
        "dim": Table("kind STRING, label STRING"),
    }
    world = World(spark, tmp_path, tables)
    for name, sql in MODELS.items():
        world.model(name, sql)
    for step in range(4):
        first = 0 if step == 0 else 27 + 3 * step
        world.insert("ev", [_event(rng, first + number) for number in range(30 if step == 0 else 3)])
        world.insert("dim", [(rng.choice("xyz"), f"l{step}")])
        if step:
            world.delete("ev", rng.sample(tables["ev"].rows, 2))
        asked = unasked.step(world)
        assert step == 0 or not asked


def _event(rng: random.Random, id: int) -> tuple[Any, ...]:
    return (
        id,
        rng.choice(["ann-b", "bob", "cy-d-e", None]),
        rng.choice("xyz"),
        rng.choice([None, [], ["a"], ["a", "b"], ["b", None, "c"]]),
        rng.choice([None, {}, {"k1": "v"}, {"k1": None, "k2": "w"}]),
        rng.choice([None, [], [("s1", 2, Decimal("1.50"))], [("s1", 1, Decimal("2.00")), ("s2", None, None)]]),
        rng.choice([None, ("Rome", 1), ("Oslo", None)]),
        datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=id),
    )
