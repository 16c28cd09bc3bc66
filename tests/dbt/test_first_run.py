"""A first run over few records starts no JVM; its relations are made by the first session that anybody opens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.dbt.test_without_session import MODELS, Shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OWN = {
    "paid": """select o.customer, c.region as title, count(*) as orders, sum(o.amount) as amount, max(o.amount) as most,
        avg(o.amount) as mean, min(c.since) as since, sum(c.credit) as credit
        from {{ source('shop', 'orders') }} o join {{ source('shop', 'customers') }} c on c.name = o.customer
        group by all""",
}
TEST = """
version: 2
models:
  - name: large
    columns:
      - {name: size, data_tests: [not_null, {accepted_values: {values: [large, small]}}]}
  - {name: zz, columns: [{name: p, data_tests: [not_null]}]}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path)
    (tmp_path / "seeds" / "regions.csv").unlink()
    for name, sql in OWN.items():
        made.project.write(f"models/{name}.sql", sql)
    made.arrive()
    return made


def _rows(shop: Shop, *names: str, after: Sequence[list[str]] = ()) -> list[int]:
    """How many rows each relation shows: as many as its updates add up to. ``after``: these commands of dbt."""
    each = [f"{shop.project.schema}.{name}" for name in names]
    counts = [
        f"select (select count(*) from {r}) as rows, (select sum(dd_diff) from {r}__changes) as sum" for r in each
    ]
    show = ["show", "--inline", " union all ".join(counts), "--limit", "9", "--output", "json", "--quiet"]
    shown = shop.in_one_process(*(["--quiet", *command] for command in after), show)
    found = json.loads(shown[shown.index("{") :])["show"]
    assert len(found) == len(names) and all(row["rows"] == row["sum"] for row in found)
    return [row["rows"] for row in found]


def test_no_java(spark: SparkSession, shop: Shop) -> None:
    shop.dbt("run", java=False)
    assert set(shop.strategies().values()) == {"initial"}
    shop.dbt("run", java=False)
    assert set(shop.strategies().values()) == {"skip"}
    shop.arrive()
    shop.dbt("run", java=False)
    assert "delta" in shop.strategies().values()
    shop.verify(spark)
    _rows(shop, *MODELS)
    shop.arrive()
    shop.dbt("run", java=False)
    assert "Reduce" in shop.dd("explain", "paid", java=False)
    for line in shop.dd("compact", "--retain-history", "0 days", java=False).splitlines():
        assert line.endswith("files 3 -> 1") or "files 3" not in line, line
    shop.dbt("run", java=False)
    assert _rows(shop, "large") == [27]
    shop.verify(spark)


def test_of_one_command(shop: Shop) -> None:
    """Models that were built before a test, or a model that only Spark computes, has opened the session."""
    shop.project.write("models/tests.yml", TEST)
    shop.project.write("models/zz.sql", "select approx_percentile(amount, 0.5) as p from {{ ref('large') }}")
    shop.dbt("build", java=True)
    told = json.loads((shop.folder / "target" / "run_results.json").read_text())["results"]
    assert {r["unique_id"].split(".")[2]: r["status"] for r in told if "not_null" in r["unique_id"]} == {
        "not_null_large_size": "pass",
        "not_null_zz_p": "pass",
    }
    shop.arrive()
    shop.dbt("run", "--exclude", "zz", java=False)


def test_a_model_that_becomes_a_table(shop: Shop) -> None:
    shop.dbt("run", java=False)
    shop.project.write("models/large.sql", f"{{{{ config(materialized='table') }}}} {MODELS['large']}")
    schema = shop.project.schema
    queries = (f"select 'rows', count(*) from {schema}.large", f"show tables in {schema} like 'large*'")
    asked = "".join(f'{{{{ print(run_query("{sql}").columns[1].values()) }}}}' for sql in queries)
    shop.project.write("macros/look.sql", f"{{% macro look() %}}{asked}{{% endmacro %}}")
    told = shop.in_one_process(["run"], ["run-operation", "look"])
    assert "(9,)\n('large',)\n" in told


def test_a_query_that_spark_refuses(shop: Shop) -> None:
    """Nobody but Spark says why; nothing is stored of the model."""
    shop.project.write("models/wrong.sql", "select customer, sum(amuont) as total from {{ ref('large') }} group by 1")
    with pytest.raises(AssertionError, match=r"amuont.*cannot be resolved"):
        shop.dbt("run", java=True)
    assert not (shop.folder / ".dbt_incremental_dd" / "collections" / f"{shop.project.schema}.wrong").exists()
    assert _rows(shop, "large") == [9]


def test_the_catalog_is_lost(shop: Shop) -> None:
    """The next run, which has nothing to do, has the relations made again."""
    import shutil

    shop.dbt("run", java=False)
    assert _rows(shop, "large") == [9]
    for path in (shop.folder / ".dbt_incremental_dd").glob("metastore_db*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert _rows(shop, "large", after=[["run"]]) == [9]
