"""Topics behind TLS and a password, by the client and by Spark's connector; and what is told where they are wrong."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.sources.connectors.kafka import feed
from dbt_incremental_dd.sources.connectors.kafka import in_spark as connector
from tests.feeds.kafka import Reader, Writer, spark, spec_of
from tests.servers.secured import PASSWORD, Secured, secured

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark"]
pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def safe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(tmp_path_factory.mktemp("secured")) as running:
        yield running


def rows(*ids: int) -> list[tuple[None, dict[str, object]]]:
    return [(None, {"id": one, "v": f"v{one}", "n": one % 3}) for one in ids]


def test_messages_by_the_client(spark: SparkSession, safe: Secured, tmp_path: Path) -> None:
    _follow(spark, safe, tmp_path, "by_client", safe.client())


def test_messages_by_spark(
    spark: SparkSession, safe: Secured, tmp_path: Path, in_spark: Thresholds, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[object] = []
    read = connector.read
    monkeypatch.setattr(connector, "read", lambda *given: found.append(read(*given)) or found[-1])
    _follow(spark, safe, tmp_path, "by_spark", {**safe.client(), **safe.java()}, in_spark)
    assert len(found) == 3 and None not in found


def _follow(
    spark: SparkSession,
    safe: Secured,
    folder: Path,
    topic: str,
    options: dict[str, str],
    thresholds: Thresholds | None = None,
) -> None:
    safe.broker.create(topic, 2)
    spec = spec_of(safe.servers, topic, options=options, envelope="append")
    reader = Reader(spark, folder, spec, thresholds)
    writer = Writer(safe.broker, topic)
    for ids in ((1, 2, 3), (4, 5), range(6, 40)):
        writer.send(*rows(*ids))
        assert reader.take().rows == len(ids)
    assert sorted(row[0] for row in reader.rows()) == [*range(1, 40)]


@pytest.mark.parametrize("wrong", ["password", "authority"])
def test_what_is_wrong_is_told(spark: SparkSession, safe: Secured, tmp_path: Path, wrong: str) -> None:
    topic = f"wrong_{wrong}"
    safe.broker.create(topic)
    options = safe.client("guessed") if wrong == "password" else safe.client()
    said = "uthentication"
    if wrong == "authority":
        del options["ssl.ca.location"]
        said = "certificate"
    began = time.monotonic()
    with pytest.raises(SourceError, match=f"topic {topic} cannot be read from {safe.servers}.*{said}") as caught:
        Reader(spark, tmp_path, spec_of(safe.servers, topic, options=options, envelope="append")).take()
    assert time.monotonic() - began < 10
    told = str(caught.value) + json.dumps(caught.value.remedy)
    assert PASSWORD not in told and "guessed" not in told
    assert "security" in caught.value.remedy


def test_options_are_not_shown(safe: Secured) -> None:
    spec = spec_of(safe.servers, "t", options={**safe.client(), **safe.java()}, envelope="append")
    assert PASSWORD not in repr(spec) + repr(feed.feed_of(spec))
