"""Settings of topics, and what is refused; without a broker."""

from __future__ import annotations

import pytest

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.sources.connectors.kafka.feed import feed_of
from tests.feeds.kafka import spec_of

WRONG = {
    "no servers": ({"envelope": "append", "options": {"bootstrap.servers": ""}}, "needs the option bootstrap.servers"),
    "snapshot": ({}, "a topic holds changes"),
    "order": ({"envelope": "upsert", "key": "id", "order_by": "n"}, "order_by means nothing"),
    "path": (
        {"envelope": "append", "path": "x", "format": "json"},
        "path means nothing to connector kafka, which reads a topic",
    ),
    "format": ({"envelope": "append", "format": "parquet"}, "cannot read parquet"),
    "csv of events": ({"envelope": "debezium", "key": "id", "format": "csv"}, "cannot read csv with envelope debezium"),
    "event time": ({"envelope": "upsert", "key": "id", "event_time": "n"}, "lose the topic's order"),
    "registry": ({"envelope": "append", "format": "avro"}, "needs the option schema.registry.url"),
    "plain key": (
        {"envelope": "upsert", "key": ["id", "v"], "options": {"key.format": "string"}},
        "cannot be the columns id, v",
    ),
    "key format": ({"envelope": "upsert", "key": "id", "options": {"key.format": "xml"}}, "key.format is 'xml'"),
    "avro key": ({"envelope": "upsert", "key": "id", "options": {"key.format": "avro"}}, "goes with format: avro"),
    "start": ({"envelope": "append", "options": {"auto.offset.reset": "none"}}, "auto.offset.reset is 'none'"),
    "topic elsewhere": ({"connector": "table"}, "topic is for connector kafka"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_settings(case: str) -> None:
    meta, message = WRONG[case]
    with pytest.raises(ConfigError, match=message):
        spec_of("127.0.0.1:9", "t", **meta)
    with pytest.raises(ConfigError, match=r"no columns|do not say what their columns"):
        spec_of("127.0.0.1:9", "t", {}, envelope="append", format="csv")


def test_the_topic_is_the_identifier() -> None:
    meta = {"connector": "kafka", "envelope": "append", "options": {"bootstrap.servers": "x"}}
    for relation, expected in (("raw.Orders", "Orders"), ("`raw`.`shop.Orders`", "shop.Orders")):
        assert feed_of(parse_source("raw.orders", relation, meta, {}, "/")).topic == expected


def test_options_are_parted_by_whom_they_are_for() -> None:
    """Secrets are for the client alone, and are not shown; where there are any, Spark's connector needs its own."""
    options = {"sasl.password": "hidden", "sep": ";", "auto.offset.reset": "latest"}
    feed = feed_of(spec_of("broker:1", "t", envelope="append", format="csv", options=options))
    assert feed.client == {"bootstrap.servers": "broker:1", "sasl.password": "hidden"} and feed.reader == {"sep": ";"}
    assert feed.from_latest and feed.java is None and "hidden" not in repr(feed)
    own = {**options, "kafka.sasl.jaas.config": "theirs"}
    feed = feed_of(spec_of("broker:1", "t", envelope="append", format="csv", options=own))
    assert feed.java == {"kafka.bootstrap.servers": "broker:1", "kafka.sasl.jaas.config": "theirs"}
    assert feed_of(spec_of("broker:1", "t", envelope="append")).java == {"kafka.bootstrap.servers": "broker:1"}
