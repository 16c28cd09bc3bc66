"""dbt's ways to run one model whose parents are not selected, over a chain of models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dbt_incremental_dd.runtime.verify import verify
from dbt_incremental_dd.trace.layout import Storage
from tests.dbt.project import Project, rows, strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = """
version: 2
sources:
  - name: raw
    schema: {schema}raw
    tables:
      - name: events
        columns: [{{name: k, data_type: int}}, {{name: v, data_type: bigint}}]
        config: {{meta: {{differential: {{envelope: append, path: data/events, format: json}}}}}}
"""


def test_one_model_can_always_be_run(spark: SparkSession, tmp_path: Path) -> None:
    """Each model's rows are Spark's answer to its SQL after every command; changes downstream are differences."""
    project = Project(tmp_path)
    storage = Storage(str(tmp_path / ".dbt_incremental_dd"))

    def edit(sums: str) -> None:
        project.write("models/b.sql", f"select k, {sums} as s from {{{{ ref('a') }}}} group by k")

    def check(*expected: tuple[int, int]) -> None:
        found = verify(spark, storage)
        assert len(found) == 3 and all(one.exact for one in found), found
        assert rows(spark, project, "b") == list(expected)
        changes = spark.table(f"{project.schema}.b__changes").groupBy("k", "s").sum("dd_diff").collect()
        assert sorted((row[0], row[1]) for row in changes if row[2]) == list(expected)

    project.write("models/sources.yml", SOURCES.format(schema=project.schema))
    project.write("models/a.sql", "select k, v from {{ source('raw', 'events') }} where v > 0")
    edit("sum(v)")
    project.write("models/c.sql", "select a.v, b.s from {{ ref('a') }} a join {{ ref('b') }} b on b.k = a.k")
    project.records("data/events/1.json", [{"k": i % 2, "v": i} for i in range(5)])
    project.dbt("run")
    (tmp_path / "state").mkdir()
    (tmp_path / "target/manifest.json").rename(tmp_path / "state/manifest.json")
    check((0, 6), (1, 4))

    edit("sum(v) + 1")
    result = project.dbt("run", "-s", "b")
    assert strategies(result) == {"b": "rebuild"} and "held back by" in result["b"].message
    check((0, 7), (1, 5))
    edit("sum(no_such)")
    assert "no_such" in project.dbt("run", "-s", "b", fails=True)["b"]
    check((0, 7), (1, 5))
    edit("sum(v) * 2")
    assert strategies(project.dbt("retry")) == {"b": "rebuild"}
    check((0, 12), (1, 8))
    result = project.dbt("run", "-s", "c")
    assert strategies(result) == {"c": "delta"} and result["c"].adapter_response["rows_removed"] == 4
    check((0, 12), (1, 8))
    edit("sum(v) * 3")
    result = project.dbt("run", "-s", "state:modified+", "--state", str(tmp_path / "state"))
    assert strategies(result) == {"b": "rebuild", "c": "delta"}
    check((0, 18), (1, 12))
    result = project.dbt("run", "--full-refresh", "-s", "b")
    assert strategies(result) == {"b": "rebuild"} and result["b"].adapter_response["rows_added"] == 0
    project.records("data/events/2.json", [{"k": 1, "v": 5}])
    assert strategies(project.dbt("run")) == {"a": "delta", "b": "delta", "c": "delta"}
    check((0, 18), (1, 27))
