"""Models as projects have them ask Spark for nothing after their first run: a process without a session opens none."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.engine import unasked
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DIGITS = """p AS (SELECT 0 AS n UNION ALL SELECT 1), numbers AS (
  SELECT a.n * power(2, 0) + b.n * power(2, 1) + c.n * power(2, 2) + d.n * power(2, 3) AS n
  FROM p AS a CROSS JOIN p AS b CROSS JOIN p AS c CROSS JOIN p AS d)"""
_SURE = """coalesce({0}(CASE WHEN id > 2 THEN ordered_at END), nvl2({0}(CASE WHEN id > 2 THEN ordered_at END),
  assert_true({0}(CASE WHEN id > 2 THEN ordered_at END) IS NOT NULL), NULL))"""
"""As dbt's macros write a date in Spark's SQL (``dateadd``, ``datediff``): it may be NULL all the same."""
MODELS = {
    "staged": """SELECT id AS order_id, lower(status) AS status, coalesce(amount, 0) AS amount,
      round(amount * 1.19, 2) AS gross, CAST(amount AS DECIMAL(10, 2)) AS exact, amount::string AS written,
      date_trunc('month', ordered_at) AS month, concat(status, '-', id) AS k FROM {orders}""",
    "texts": """SELECT id, split(note, '-')[0] AS a, element_at(split(note, ' '), -1) AS b, split_part(note, '-', 2) AS c,
      substring_index(note, 'l', -1) AS d, size(split(note, 'l')) AS e, note LIKE ANY ('%b%', 'x%') AS f,
      id || ':' || status AS g, md5(concat_ws('-', id, coalesce(status, '_null_'))) AS h FROM {orders}""",
    "dates": """SELECT id, months_between(day, DATE '2024-01-31') AS m, datediff(day, DATE '2023-12-31') AS d,
      timestampdiff(HOUR, TIMESTAMP '2024-01-01 00:00:00', ordered_at) AS h, last_day(day) AS l FROM {orders}""",
    "totals": """SELECT c.id, c.name, count(o.id) AS n, sum(o.amount) AS total, avg(o.amount) AS mean,
      max(o.ordered_at) AS last FROM {customers} c LEFT JOIN {orders} o ON o.customer_id = c.id GROUP BY c.id, c.name""",
    "spread": """SELECT status, stddev(amount) AS s, var_pop(price) AS v, median(price) AS m,
      percentile(id, 0.9) AS p, max_by(note, id) AS latest FROM {orders} GROUP BY status""",
    "pivot": """SELECT customer_id, sum(CASE WHEN status = 'paid' THEN amount ELSE 0 END) AS paid,
      sum(amount) FILTER (WHERE status = 'open') AS open FROM {orders} GROUP BY customer_id""",
    "running": """SELECT id, sum(amount) OVER (PARTITION BY customer_id ORDER BY id) AS running,
      avg(amount) OVER (PARTITION BY customer_id) AS mean, avg(price) OVER (PARTITION BY status ORDER BY id
      ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS moving FROM {orders}""",
    "rolled": "SELECT customer_id, status, sum(amount) AS a, grouping_id() AS g FROM {orders} GROUP BY CUBE (1, 2)",
    "shares": "SELECT id, amount / (SELECT sum(amount) FROM {orders}) AS share FROM {orders}",
    "above": """SELECT id FROM {orders} o
      WHERE amount > (SELECT avg(amount) FROM {orders} i WHERE i.customer_id = o.customer_id)""",
    "labelled": """WITH labels AS (SELECT 'paid' AS code, 'Paid' AS label UNION ALL SELECT 'open', NULL)
      SELECT o.id, l.label FROM {orders} o LEFT JOIN labels l ON l.code = o.status""",
    "listed": """SELECT o.id, v.rate * o.amount AS x FROM {orders} o
      JOIN (VALUES ('paid', 1.5), ('open', 2)) AS v(code, rate) ON v.code = o.status""",
    "spine": """SELECT s.day, count(o.id) AS n, sum(o.amount) AS a FROM (
      SELECT explode(sequence(DATE '2024-01-01', DATE '2024-02-01', INTERVAL 1 DAY)) AS day) s
      LEFT JOIN {orders} o ON o.day = s.day GROUP BY s.day""",
    "months": """SELECT m.month, count(*) AS n FROM (
      SELECT explode(sequence(DATE '2023-12-31', DATE '2024-06-30', INTERVAL 1 MONTH)) AS month) m
      JOIN {orders} o ON last_day(o.day) = m.month GROUP BY 1""",
    "generated": f"""WITH {_DIGITS}, days AS (SELECT date_add(DATE '2024-01-01', CAST(n AS INT)) AS day FROM numbers)
      SELECT d.day, count(o.id) AS n FROM days d LEFT JOIN {{orders}} o ON o.day = d.day GROUP BY 1""",
    "wide_keys": """SELECT o.id, x.n, f.a FROM {orders} o
      LEFT JOIN (SELECT CAST(customer_id AS BIGINT) AS k, count(*) AS n FROM {orders} GROUP BY 1) x ON x.k = o.customer_id
      LEFT JOIN (SELECT CAST(id AS BIGINT) AS k, max(name) AS a FROM {customers} GROUP BY 1) f ON f.k = o.customer_id""",
    "moved": f"""SELECT id, to_timestamp(to_unix_timestamp(date_add({_SURE.format("date")}, CAST(3 * 1 AS INT)))
      + to_unix_timestamp({_SURE.format("to_timestamp")}) - to_unix_timestamp({_SURE.format("date")})) AS later,
      datediff(DATE '2024-06-30', {_SURE.format("date")}) AS days, date_format(ordered_at, 'EEE, MMMM dd') AS written,
      CASE WHEN ordered_at >= TIMESTAMP '2024-01-03 00:00:00' THEN 1e-1 ELSE 0e0 END AS x, note RLIKE '^[a-z]+$' AS r,
      split(note, CASE WHEN regexp_extract('-', '([^A-Za-z0-9])(.*)', 1) != '_' THEN concat('\\\\', '-') ELSE '-' END)[0]
      AS part FROM {{orders}}""",
    "unknown": "SELECT id, name FROM {customers} UNION ALL SELECT -1 AS id, 'unknown' AS name",
    "united": """SELECT id, name, NULL AS status, 'customer' AS kind FROM {customers}
      UNION ALL SELECT id, note, status, 'order' FROM {orders} WHERE 1 = 1""",
}


def test_nobody_asks_spark(spark: SparkSession, tmp_path: Path) -> None:
    rng, ids = random.Random(5), iter(range(10_000))
    tables = {
        "orders": Table(
            "id INT, customer_id INT, status STRING, amount DOUBLE, price DECIMAL(12,2), note STRING, "
            "ordered_at TIMESTAMP, day DATE"
        ),
        "customers": Table("id INT, name STRING"),
    }
    world = World(spark, tmp_path, tables)
    for name, sql in MODELS.items():
        world.model(name, sql)
    for step in range(4):
        # Sums of eighths are the same in every order.
        world.insert("orders", _orders(rng, ids, 30 if step == 0 else 3))
        world.insert("customers", [(next(ids) % 40, f"name {step}")])
        if step:
            world.delete("orders", rng.sample(tables["orders"].rows, 2))
        asked = unasked.step(world)
        assert step == 0 or not asked


def _orders(rng: random.Random, ids: Iterator[int], count: int) -> list[tuple[Any, ...]]:
    made = []
    for _ in range(count):
        number = next(ids)
        made.append(
            (
                number,
                rng.randint(0, 12),
                rng.choice(["paid", "open", "returned", None]),
                rng.choice([0.125, 2.5, 10.0, None]),
                Decimal(rng.randint(0, 9999)) / 100,
                rng.choice(["a-b", "x_y z", "Hello", None]),
                datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=7 * number),
                datetime.date(2024, 1, 1) + datetime.timedelta(days=number // 3),
            )
        )
    return made
