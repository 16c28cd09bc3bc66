"""The project's own collections as Delta tables, read by Spark's Delta connector and by ClickHouse."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compact import compact
from dbt_incremental_dd.runtime.verify import contents
from dbt_incremental_dd.trace.columns import visible_schema
from dbt_incremental_dd.trace.layout import CollectionStore
from tests.lake.conftest import VERSION
from tests.oracle import Table, World, difference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.lake, pytest.mark.skipif(VERSION == "4.1", reason="Delta is tested with Spark 4.2")]


def by_connector(spark: SparkSession, place: CollectionStore, t: int) -> DataFrame:
    """Contents as docs/operations.md says that they are read."""
    names = [
        name for name in spark.read.format("delta").load(place.trace_uri).columns if name not in ("dd_time", "dd_diff")
    ]
    columns = ", ".join(f"`{name}`" for name in names)
    return spark.sql(
        f"SELECT {columns} FROM (SELECT {columns}, sum(dd_diff) AS dd_diff FROM delta.`{place.trace_uri}`"
        f" WHERE dd_time <= {t} GROUP BY ALL)"
        " LATERAL VIEW explode(array_repeat(0, CAST(dd_diff AS INT))) AS dd_copy"
    )


def by_clickhouse(place: CollectionStore, names: tuple[str, ...], t: int) -> Counter[tuple[Any, ...]]:
    """Contents by a reader that shares no code with the project's."""
    chdb = pytest.importorskip("chdb")
    columns = ", ".join(f'"{name}"' for name in names)
    sql = (
        f"SELECT {columns}, sum(dd_diff) AS dd_count FROM deltaLakeLocal('{place.trace_uri}')"
        f" WHERE dd_time <= {t} GROUP BY {columns} HAVING dd_count != 0"
    )
    rows = chdb.query(sql, "ArrowTable").to_pylist()
    return Counter({tuple(row[name] for name in names): row["dd_count"] for row in rows})


def check(world: World, name: str, t: int) -> None:
    """Both readers see what the project does."""
    place = world.storage.collection(f"{world.schema}.{name}")
    log = place.log()
    assert log is not None
    schema = visible_schema(place.read_manifest(log.manifest), log)
    ours = contents(world.spark, log, schema, t)
    assert difference(ours, by_connector(world.spark, place, t).select(ours.columns)) == ([], [])
    assert by_clickhouse(place, schema.names, t) == Counter(tuple(row) for row in ours.collect())


def test_other_readers_see_the_same(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # ClickHouse reads files below the current folder only
    rows = [(i, i % 4, f"v{i % 3} ü", i * 10) for i in range(60)]
    world = World(spark, tmp_path, {"t": Table("id BIGINT, g INT, v STRING, a BIGINT", rows)})
    world.model("sums", "SELECT g, count(*) AS n, sum(a) AS a, max(v) AS v FROM {t} GROUP BY g")
    world.model("few", "SELECT v, g FROM {t} WHERE a > 100")
    times = []
    for step in range(6):
        world.insert("t", [(100 + step, step % 4, None if step % 2 else "new", step)])
        world.delete("t", [world.tables["t"].rows[step * 3]])
        world.step()
        times.append(world.time)
    for t in (times[0], times[3], times[-1]):
        check(world, "sums", t)
    check(world, "few", times[-1])
    list(compact(LazySession.of(spark), world.storage, retain_history=2))
    for name in world.models:
        log = world.storage.collection(f"{world.schema}.{name}").log()
        assert log is not None
        log.checkpoint()
    world.insert("t", [(500, 1, "last", 1_000)])
    world.step()
    for t in (times[-1], world.time):
        check(world, "sums", t)
        check(world, "few", t)
