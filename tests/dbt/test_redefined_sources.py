"""Seeds and sources whose columns change between runs: every model follows, and none needs a hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from dbt_incremental_dd.runtime.verify import contents
from dbt_incremental_dd.trace.columns import require
from dbt_incremental_dd.trace.layout import Storage
from tests.dbt.java_free import JavaFree
from tests.time_zone import time_zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SEEDS = (
    "id,price\n1,10\n2,20\n",
    "id,price\n1,10.5\n2,20\n3,\n",
    "id,name,price\n1,a,10.5\n2,b,20\n",
    "id,name\n1,a\n2,b\n2,b\n",
    "name,id\na,1\n,2\n",
)
_EVENTS = (
    "{name: id, data_type: bigint}, {name: n, data_type: int}",
    "{name: id, data_type: bigint}, {name: n, data_type: int}, {name: w, data_type: string}",
    "{name: id, data_type: bigint}, {name: n, data_type: 'decimal(12,2)'}, {name: w, data_type: string}",
    "{name: n, data_type: 'decimal(12,2)'}, {name: id, data_type: bigint}",
    "{name: id, data_type: bigint}",
)
_SOURCE = """
sources:
  - name: feed
    schema: feed
    tables:
      - name: events
        columns: [%s]
        config: {meta: {differential: {path: events, format: json, envelope: append}}}
"""
_MODELS = {
    "prices_copied": "select * from {{ ref('prices') }}",
    "events_copied": "select * from {{ source('feed', 'events') }}",
    "joined": "select e.*, p.id as of from {{ ref('events_copied') }} e join {{ ref('prices') }} p on e.id = p.id",
    "counted": "select id, count(*) as c from {{ ref('joined') }} group by id",
    "kept": "{{ config(history={'unique_key': 'id'}) }} select id, count(*) as c from {{ ref('prices') }} group by id",
}


def test_all_models_follow(spark: SparkSession, tmp_path: Path) -> None:
    free = JavaFree(tmp_path / "redefined")
    for name, sql in _MODELS.items():
        free.project.write(f"models/{name}.sql", sql)
    (free.folder / "events").mkdir()
    for round, (prices, columns) in enumerate(zip(_SEEDS, _EVENTS, strict=True)):
        free.project.write("seeds/prices.csv", prices)
        free.project.write("models/feed.yml", _SOURCE % columns)
        lines = "".join(f'{{"id": {k}, "n": {k}{round}, "w": "w{k}"}}\n' for k in range(1, 4))
        (free.folder / "events" / f"{round}.json").write_text(lines)
        text = free.dbt("build")
        assert ("it is taken in anew" in text) == (round > 0)
        free.verify(spark, 5)
        names = require(Storage(str(free.state)), f"{free.project.schema}.prices_copied")[1].names
        assert list(names) == prices.split("\n")[0].split(",")
        assert "it is taken in anew" not in free.dbt("build")


_TIMES = {
    "of_events": "select id, at, date_trunc('day', at) as day, cast(at as string) as text from {{ source('feed', 'times') }}",
    "of_days": "select to_date(day) as day, count(*) as c from {{ ref('of_events') }} group by 1",
    "of_seeds": "select id, cast(at as string) as text from {{ ref('moments') }}",
}
_TIMES_FEED = _SOURCE.replace("events", "times") % "{name: id, data_type: bigint}, {name: at, data_type: timestamp}"


def test_all_models_follow_the_time_zone(spark: SparkSession, tmp_path: Path) -> None:
    free = JavaFree(tmp_path / "zones")
    for name, sql in _TIMES.items():
        free.project.write(f"models/{name}.sql", sql)
    free.project.write("models/feed.yml", _TIMES_FEED)
    free.project.write("seeds/moments.csv", "id,at\n1,2026-01-01 22:00:00\n")
    (free.folder / "times").mkdir()
    for round, zone in enumerate(("UTC", "Asia/Tokyo", "America/New_York", "UTC")):
        target: dict[str, Any] = {"type": "differential", "schema": free.project.schema, "threads": 2}
        target["server_side_parameters"] = {"spark.sql.session.timeZone": zone}
        free.project.write("profiles.yml", yaml.safe_dump({"p": {"target": "dev", "outputs": {"dev": target}}}))
        lines = f'{{"id": {round}, "at": "2026-01-01 20:30:00"}}\n{{"id": {round}, "at": "2026-01-01T20:30:00Z"}}\n'
        (free.folder / "times" / f"{round}.json").write_text(lines)
        free.dbt("build")
        with time_zone(spark, zone):
            free.verify(spark, 3)
            log, schema = require(Storage(str(free.state)), f"{free.project.schema}.of_events")
            texts = [row["text"] for row in contents(spark, log, schema, log.frontiers.last).collect()]
        assert texts.count("2026-01-01 20:30:00") >= round + 1, "what names no zone is in the session's"
