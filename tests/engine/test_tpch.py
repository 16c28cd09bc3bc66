"""TPC-H's 22 queries as models, without any fallback, at a small scale; ``make tpch`` runs them at 0.1."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks import rounds
from benchmarks.tpch.feed import Feed
from benchmarks.tpch.run import QUERIES, sources
from tests.engine.plans import assert_as_before
from tests.engines import engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLANS = Path(__file__).with_name("tpch_plans")
NAMES = sorted(path.stem for path in QUERIES.glob("q*.sql"))
MONEY = "DECIMAL(15,2)"
TABLES = {
    "region": "r_regionkey BIGINT, r_name STRING, r_comment STRING",
    "nation": "n_nationkey BIGINT, n_name STRING, n_regionkey BIGINT, n_comment STRING",
    "supplier": "s_suppkey BIGINT, s_name STRING, s_address STRING, s_nationkey BIGINT, s_phone STRING, "
    f"s_acctbal {MONEY}, s_comment STRING",
    "part": "p_partkey BIGINT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT, "
    f"p_container STRING, p_retailprice {MONEY}, p_comment STRING",
    "partsupp": f"ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost {MONEY}, ps_comment STRING",
    "customer": "c_custkey BIGINT, c_name STRING, c_address STRING, c_nationkey BIGINT, c_phone STRING, "
    f"c_acctbal {MONEY}, c_mktsegment STRING, c_comment STRING",
    "orders": f"o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice {MONEY}, o_orderdate DATE, "
    "o_orderpriority STRING, o_clerk STRING, o_shippriority INT, o_comment STRING",
    "lineitem": "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, "
    f"l_quantity {MONEY}, l_extendedprice {MONEY}, l_discount {MONEY}, l_tax {MONEY}, l_returnflag STRING, "
    "l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING, "
    "l_shipmode STRING, l_comment STRING",
}


def test_all_queries_are_here() -> None:
    assert len(NAMES) == 22


@pytest.mark.parametrize("name", NAMES)
def test_plans_are_as_before(spark: SparkSession, name: str) -> None:
    assert_as_before(spark, QUERIES / f"{name}.sql", "tpch", TABLES, PLANS)


@pytest.mark.slow
@pytest.mark.parametrize("is_all_in_spark", [False, True], ids=["on the driver", "in Spark"])
def test_all_queries_are_exact_after_every_round(spark: SparkSession, tmp_path: Path, is_all_in_spark: bool) -> None:
    feed = Feed(tmp_path, 0.01, 0.002)
    spark.sql("CREATE DATABASE IF NOT EXISTS tpch")
    models = rounds.requests("tpch", QUERIES, sources(tmp_path), None)
    assert not rounds.run(spark, tmp_path, feed, models, rounds=2, thresholds=engine(is_all_in_spark))
