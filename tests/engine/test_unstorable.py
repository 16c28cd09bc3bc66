"""Types that no file can hold: as a column they are refused by name; inside a query it is exact in every run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compile import compile_model
from dbt_incremental_dd.trace.spark_reader import schema_of
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = "id INT, m INT, s STRING, ts TIMESTAMP"
COLUMNS = {
    "SELECT make_ym_interval(0, m) AS i FROM t": "an INTERVAL",
    "SELECT make_interval(0, m) AS i FROM t": "an INTERVAL",
    "SELECT array(make_interval(m)) AS i FROM t": "an INTERVAL",
    "SELECT named_struct('x', INTERVAL 1 YEAR) AS i FROM t": "an INTERVAL",
    "SELECT make_ym_interval(m) AS i, count(*) AS n FROM t GROUP BY 1": "an INTERVAL",
    "SELECT time'12:00:00' AS i FROM t": "a TIME",
    "SELECT to_time(s) AS i FROM t": "a TIME",
    "SELECT to_time(s) AS i, count(*) AS n FROM t GROUP BY 1": "a TIME",
}
INSIDE = {
    "key of a group": "SELECT count(*) AS n FROM {t} GROUP BY make_ym_interval(0, m)",
    "distinct": "SELECT count(DISTINCT make_ym_interval(0, m)) AS n FROM {t}",
    "key of a join": "SELECT a.id, b.id AS o FROM {t} a JOIN {t} b ON make_ym_interval(0, a.m) = make_ym_interval(0, b.m)",
    "key of a left join": "SELECT a.id, b.id AS o FROM {t} a LEFT JOIN {t} b ON make_ym_interval(a.m) = make_ym_interval(b.m)",
    "key of IN": "SELECT id FROM {t} WHERE make_ym_interval(m) IN (SELECT make_ym_interval(m) FROM {t} WHERE id > 2)",
    "column inside": "SELECT id, ts + i AS x FROM (SELECT DISTINCT id, ts, make_ym_interval(m) AS i FROM {t})",
    "extreme": "SELECT m, CAST(max(make_ym_interval(id)) AS STRING) AS x FROM {t} GROUP BY m",
    "sum": "SELECT m, CAST(sum(make_dt_interval(id)) AS STRING) AS x FROM {t} GROUP BY m",
    "window": "SELECT id, rank() OVER (PARTITION BY make_ym_interval(m) ORDER BY make_ym_interval(id)) AS r FROM {t}",
    "order": "SELECT id FROM {t} ORDER BY make_ym_interval(id) DESC, id LIMIT 2",
    "NULL's own type": "SELECT CAST(x AS INT) AS x, n FROM (SELECT CAST(NULL AS VOID) AS x, count(*) AS n FROM {t} GROUP BY 1)",
    "calendar": "SELECT id, ts + make_interval(0, m) AS x FROM {t} WHERE ts + make_interval(0, m) > ts",
}
OF_TIME = {
    "time in a filter": "SELECT id FROM {t} WHERE to_time(s) > time'01:00:00'",
    "time as a key": "SELECT count(*) AS n FROM {t} GROUP BY to_time(s)",
    "time as a key of a join": "SELECT a.id, b.id AS o FROM {t} a JOIN {t} b ON to_time(a.s) = to_time(b.s)",
    "time as text": "SELECT id, CAST(to_time(s) AS STRING) AS x, CAST(time'00:01:52' AS INT) AS y FROM {t}",
}


@pytest.fixture
def has_time(spark: SparkSession) -> Iterator[bool]:
    """Whether columns have TIME: it came with Spark 4.1, and a setting keeps it from columns unless it is turned on."""
    spark.conf.set("spark.sql.timeType.enabled", "true")
    try:
        found = bool(spark.sql("SELECT time'12:00:00' AS x, to_time(s) AS y FROM VALUES ('12:00') AS t(s)").columns)
    except PySparkException:
        found = False
    yield found
    spark.conf.unset("spark.sql.timeType.enabled")


@pytest.mark.parametrize("sql", COLUMNS)
def test_columns_are_refused_by_name(spark: SparkSession, has_time: bool, sql: str) -> None:
    if ("to_time" in sql and not has_time) or ("time'" in sql and spark.version < "4.1"):
        pytest.skip("in this Spark no column has TIME")
    schema = schema_of(spark.createDataFrame([], DDL).schema)
    with pytest.raises(UnsupportedSQL) as refused:
        compile_model(LazySession.of(spark), "m", parsed(sql), {"t": Input("t", schema)})
    assert refused.value.construct == f"column i has {COLUMNS[sql]}"
    assert "CAST(i AS STRING)" in refused.value.remedy


def test_queries_that_compute_with_them_are_exact_in_every_run(
    spark: SparkSession, tmp_path: Path, has_time: bool
) -> None:
    world = World(spark, tmp_path, {"t": Table(DDL)})
    for i, sql in enumerate((INSIDE | (OF_TIME if has_time else {})).values()):
        world.model(f"m{i}", sql)
    rows = [(i, i % 3, f"0{i}:00:00", datetime(2024, 1, 1 + i)) for i in range(4)]
    world.insert("t", [*rows, (9, None, None, None)])
    for step in range(3):
        failures = world.step_and_check_each(threads=3)
        assert not failures, "\n\n".join([f"step {step}", *failures])
        world.delete("t", [rows[step]])
        world.insert("t", [(10 + step, step, "03:00:00", datetime(2024, 2, 1 + step))])
