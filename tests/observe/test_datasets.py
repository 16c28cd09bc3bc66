"""Datasets have the names that OpenLineage's client gives them."""

from __future__ import annotations

from typing import Any

import pytest
from openlineage.client.naming import dataset as naming

from dbt_incremental_dd.observe.datasets import DatasetName, catalog_of, of_source, of_uri
from dbt_incremental_dd.sources.config import SourceSpec, parse_source

PG = "postgresql://me:s3cret@db.example:6543,other:5432/shop?sslmode=require"


@pytest.mark.parametrize(
    ("uri", "wanted"),
    [
        ("/data/orders/", naming.LocalFileSystem("/data/orders")),
        ("file:///data/orders", naming.LocalFileSystem("/data/orders")),
        ("s3a://lake/shop/orders", naming.S3("lake", "shop/orders")),
        ("s3://lake", naming.S3("lake", "/")),
        ("gs://lake/shop/orders/", naming.GCS("lake", "shop/orders")),
        ("abfss://box@acc.dfs.core.windows.net/shop", naming.ABFSS("box", "acc", "shop")),
        ("hdfs://name:8020/shop", naming.HDFS("name", "8020", "/shop")),
    ],
)
def test_stores(uri: str, wanted: Any) -> None:
    assert of_uri(uri) == (wanted.get_namespace(), wanted.get_name())


def spec(meta: dict[str, Any]) -> SourceSpec:
    return parse_source("shop.orders", "`shop`.`orders`", meta, {"id": "int"}, "/project")


@pytest.mark.parametrize(
    ("meta", "wanted"),
    [
        ({"path": "in/orders", "format": "csv", "envelope": "append"}, naming.LocalFileSystem("/project/in/orders")),
        ({"path": "s3://lake/orders", "format": "delta"}, naming.S3("lake", "orders")),
        (
            {
                "connector": "kafka",
                "envelope": "append",
                "format": "json",
                "options": {"bootstrap.servers": "SSL://one:9092,two:9092"},
            },
            naming.Kafka("one", "9092", "orders"),
        ),
        (
            {"connector": "postgres", "options": {"url": PG}},
            naming.Postgres("db.example", "6543", "shop", "shop", "orders"),
        ),
        (
            {"connector": "postgres", "table": "t", "options": {"url": "postgres://h/d"}},
            naming.Postgres("h", "5432", "d", "public", "t"),
        ),
        ({"connector": "mysql", "options": {"host": "h", "user": "u"}}, naming.MySQL("h", "3306", "shop", "orders")),
        ({}, naming.Hive("meta", "9083", "shop", "orders")),
    ],
)
def test_sources(meta: dict[str, Any], wanted: Any) -> None:
    catalog = catalog_of({"spark.hadoop.hive.metastore.uris": "thrift://meta:9083,thrift://other:9083"}, "/state")
    assert of_source(spec(meta), catalog) == (wanted.get_namespace(), wanted.get_name())


def test_a_catalog_of_its_own_is_named_by_the_state_root() -> None:
    assert of_source(spec({}), catalog_of({}, "/state")) == DatasetName("file:/state", "shop.orders")
    assert catalog_of({}, "s3://lake/state") == "s3://lake/state"


def test_no_password_is_told() -> None:
    assert of_uri("hdfs://me:s3cret@name:8020/shop") == DatasetName("hdfs://me@name:8020", "/shop")
    assert "s3cret" not in str(spec({"connector": "postgres", "options": {"url": PG}}).uri)
