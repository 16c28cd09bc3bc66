"""dbt's tests of models are answered on the driver, as Spark would: there is no Java where they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.dbt.java_free import JavaFree

_SOURCES = """
version: 2
sources:
  - name: shop
    tables:
      - name: orders
        columns:
          - {name: id, data_type: int}
          - {name: customer, data_type: int}
          - {name: status, data_type: string}
          - {name: amount, data_type: double}
        config: {meta: {differential: {envelope: append, path: orders, format: json}}}
      - name: customers
        columns: [{name: id, data_type: int}, {name: name, data_type: string}]
        config: {meta: {differential: {envelope: append, path: customers, format: json}}}
"""
_TESTS = """
version: 2
models:
  - name: orders
    columns:
      - {name: id, data_tests: [unique, not_null]}
      - name: status
        data_tests:
          - accepted_values: {arguments: {values: [paid, open]}}
          - not_null: {config: {severity: warn}}
      - name: customer
        data_tests: [{relationships: {arguments: {to: ref('customers'), field: id}}}]
  - name: totals
    columns:
      - name: customer
        data_tests: [unique: {config: {limit: 3}}]
      - name: amount
        data_tests: [not_null: {config: {error_if: ">2", warn_if: ">0", where: "customer > 0"}}]
"""
_MODELS = {
    "orders": "select * from {{ source('shop', 'orders') }}",
    "customers": "select * from {{ source('shop', 'customers') }}",
    "totals": "select customer, sum(amount) as amount, count(*) as n from {{ ref('orders') }} group by customer",
}
_SINGULAR = {
    "adds_up": """with both as (select (select sum(amount) from {{ ref('orders') }}) as a,
        (select sum(amount) from {{ ref('totals') }}) as b) select * from both where not a <=> b""",
    "no_large": "select * from {{ ref('orders') }} o join {{ ref('customers') }} c on c.id = o.customer "
    "where o.amount > 100 and c.name like 'n%'",
}


class _Shop(JavaFree):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.project.write("models/sources.yml", _SOURCES)
        self.project.write("models/tests.yml", _TESTS)
        for name, sql in _MODELS.items():
            self.project.write(f"models/{name}.sql", sql)
        for name, sql in _SINGULAR.items():
            self.project.write(f"tests/{name}.sql", sql)

    def build(self, *command: str, code: int = 0) -> dict[str, tuple[str, Any]]:
        """Each test's status and failures."""
        self.dbt(*command, code=code)
        tests = {
            r["unique_id"].split(".")[2]: (r["status"], r["failures"]) for r in self.results if "test" in r["unique_id"]
        }
        return {name: found for name, found in tests.items() if not name.startswith("model")}


@pytest.fixture
def shop(tmp_path: Path) -> _Shop:
    made = _Shop(tmp_path)
    orders = [{"id": n, "customer": n % 4, "status": ["paid", "open"][n % 2], "amount": n / 8} for n in range(12)]
    made.project.records("orders/1.json", orders)
    made.project.records("customers/1.json", [{"id": n, "name": f"name {n}"} for n in range(4)])
    return made


def test_builds_and_tests_need_no_java(shop: _Shop) -> None:
    found = shop.build("build")
    assert {status for status, _ in found.values()} == {"pass"} and len(found) == 9
    assert {failures for _, failures in found.values()} == {0}
    assert shop.build("test") == found


def test_failures_are_counted(shop: _Shop) -> None:
    shop.build("build")
    shop.project.records(
        "orders/2.json",
        [
            {"id": 3, "customer": 9, "status": "lost", "amount": 500.0},
            {"id": None, "customer": 1, "status": None, "amount": 101.0},
            {"id": 20, "customer": 7, "status": "paid", "amount": None},
        ],
    )
    shop.build("run")
    found = shop.build("test", code=1)
    assert {name: result for name, result in found.items() if result != ("pass", 0)} == {
        "unique_orders_id": ("fail", 1),
        "not_null_orders_id": ("fail", 1),
        "accepted_values_orders_status__paid__open": ("fail", 1),
        "not_null_orders_status": ("warn", 1),
        "relationships_orders_customer__id__ref_customers_": ("fail", 2),
        "not_null_totals_amount": ("warn", 1),
        "no_large": ("fail", 1),
    }
