"""What dbt itself asks (tests of sources and seeds, unit tests, show) is answered on the driver: there is no Java."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_incremental_dd.runtime.verify import verify
from dbt_incremental_dd.trace.layout import Storage
from tests.dbt.java_free import JavaFree

_SOURCES = """
version: 2
sources:
  - name: shop
    schema: raw
    tables:
      - name: orders
        columns:
          - {name: id, data_type: int, data_tests: [unique, not_null]}
          - {name: customer, data_type: int, data_tests: [not_null]}
          - {name: at, data_type: timestamp}
          - {name: amount, data_type: "decimal(10,2)"}
        config: {meta: {differential: {envelope: upsert, key: id, order_by: at, path: orders, format: json}}}
"""
_TESTS = """
version: 2
models:
  - name: totals
    columns: [{name: customer, data_tests: [unique, not_null]}]
unit_tests:
  - name: sums
    model: totals
    given:
      - input: source('shop', 'orders')
        rows: [{id: 1, customer: 7, amount: 2.50}, {id: 2, customer: 7, amount: 3}, {id: 3, customer: null}]
    expect: {rows: [{customer: 7, amount: 5.50, n: 2}, {customer: null, amount: null, n: 1}]}
  - name: with_a_text
    model: titled
    given:
      - input: ref('totals')
        rows: [{customer: 1, amount: 2, latest: "2024-01-02 03:04:05"}]
      - {input: ref('titles'), format: csv, rows: "customer,title\\n1,Ms"}
    expect: {rows: [{customer: 1, title: Ms, latest: "2024-01-02 03:04:05"}]}
  - name: of_nothing
    model: titled
    given: [{input: ref('totals'), rows: []}, {input: ref('titles'), rows: []}]
    expect: {rows: []}
"""
_MODELS = {
    "totals": "select customer, sum(amount) as amount, count(*) as n, max(at) as latest "
    "from {{ source('shop', 'orders') }} group by customer",
    "titled": "select t.customer, s.title, t.latest from {{ ref('totals') }} t join {{ ref('titles') }} s "
    "on s.customer = t.customer",
}


class _Shop(JavaFree):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.project.write("models/sources.yml", _SOURCES)
        self.project.write("models/tests.yml", _TESTS)
        self.project.write("seeds/titles.csv", "customer,title\n1,Ms\n2,Mr\n")
        self.project.write("seeds/seeds.yml", "seeds: [{name: titles, columns: [{name: title, data_tests: [unique]}]}]")
        for name, sql in _MODELS.items():
            self.project.write(f"models/{name}.sql", sql)

    def arrive(self, number: int, *orders: tuple[Any, ...]) -> None:
        names = ("id", "customer", "at", "amount")
        rows = [dict(zip(names, order, strict=True)) for order in orders]
        self.project.records(f"orders/{number}.json", rows)

    @property
    def statuses(self) -> dict[str, str]:
        return {r["unique_id"]: r["status"] for r in self.results}

    def shown(self, *command: str) -> list[dict[str, Any]]:
        text = self.dbt("show", *command, "--output", "json", "--log-format", "text")
        return json.loads(text[text.index("{") :])["show"]


@pytest.fixture
def shop(tmp_path: Path) -> _Shop:
    made = _Shop(tmp_path)
    made.arrive(1, (1, 1, "2024-01-01 10:00:00", 2.5), (2, 2, "2024-01-02 10:00:00", 3), (3, 1, None, 4))
    return made


def test_all_of_it(shop: _Shop) -> None:
    """Only a seed that is new is loaded by Spark."""
    shop.dbt("build", java=True)
    assert set(shop.statuses.values()) == {"success", "pass"} and len(shop.statuses) == 12
    shop.dbt("build")
    assert set(shop.statuses.values()) == {"success", "pass"} and len(shop.statuses) == 12
    shop.dbt("test")
    assert set(shop.statuses.values()) == {"pass"} and len(shop.statuses) == 9


def test_a_source_is_tested_as_it_is_read(shop: _Shop) -> None:
    """In `dbt build` before the models on it; `dbt test` takes nothing in."""
    shop.dbt("build", java=True)
    shop.arrive(2, (4, None, "2024-01-03 10:00:00", 1))
    shop.dbt("test")
    print(shop.dbt("build", code=1))
    failed = [name for name, status in shop.statuses.items() if status == "fail"]
    assert [name.split(".")[2] for name in failed] == ["source_not_null_shop_orders_customer"]
    assert shop.statuses["model.p.totals"] == "skipped"


def test_rows_are_shown_in_their_order(shop: _Shop) -> None:
    shop.dbt("build", java=True)
    titled = [
        {"customer": 1, "title": "Ms", "latest": "2024-01-01T10:00:00"},
        {"customer": 2, "title": "Mr", "latest": "2024-01-02T10:00:00"},
    ]
    by_customer = lambda row: row["customer"]  # noqa: E731
    assert sorted(shop.shown("--select", "titled"), key=by_customer) == titled
    of_all = "select customer, amount, n, 1.5 as x from {{ ref('totals') }} order by "
    first, second = ({"customer": 1, "amount": 6.5, "n": 2, "x": 1.5}, {"customer": 2, "amount": 3, "n": 1, "x": 1.5})
    assert shop.shown("--inline", of_all + "amount desc") == [first, second]
    assert shop.shown("--inline", of_all + "3, 1") == [second, first]
    assert shop.shown("--inline", of_all + "n", "--limit", "1") == [second]
    source = "select id, at from {{ source('shop', 'orders') }} order by at desc"
    assert [row["id"] for row in shop.shown("--inline", source)] == [2, 1, 3]


_CALENDAR = """
{% set days = 0 %}
{% if execute %}
{% set days = run_query("select datediff(date '2024-03-01', date '2024-02-01')").columns[0].values()[0] %}
{% endif %}
with twos as (select 0 as n union all select 1),
numbers as (select a.n + b.n * 2 + c.n * 4 + d.n * 8 + e.n * 16 as n
  from twos a cross join twos b cross join twos c cross join twos d cross join twos e),
ordered as (select * from numbers where n < {{ days }} order by n)
select date_add(date '2024-02-01', n) as day, date_format(date_add(date '2024-02-01', n), 'EEE') as name from ordered
"""


def test_a_calendar_needs_no_session(spark: SparkSession, tmp_path: Path) -> None:
    """Neither its rows nor what its macro asks, in the first run as in one in which there are more days."""
    shop = _Shop(tmp_path)
    shop.project.write("models/calendar.sql", _CALENDAR)
    shop.dbt("run", "--select", "calendar")
    count = f"select count(*) as n, max(day) as last from {shop.project.schema}.calendar"
    assert shop.shown("--inline", count) == [{"n": 29, "last": "2024-02-29"}]
    shop.project.write("models/calendar.sql", _CALENDAR.replace("2024-03-01", "2024-03-02"))
    shop.dbt("run", "--select", "calendar")
    assert shop.shown("--inline", count) == [{"n": 30, "last": "2024-03-01"}]
    found = verify(spark, Storage(str(tmp_path / ".dbt_incremental_dd")))
    assert [v.exact for v in found] == [True]
