"""Packages written for dbt-spark, as they are; and seeds of any text."""

from __future__ import annotations

import csv
import re
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from dbt_common.clients.agate_helper import from_csv

from dbt_incremental_dd.runtime.verify import verify
from dbt_incremental_dd.trace.layout import Storage
from tests.dbt.project import Project, strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MACROS = """
{% macro stamp() %}{{ return(adapter.dispatch('stamp', 'shape')()) }}{% endmacro %}
{% macro default__stamp() %}no_such_column{% endmacro %}
{% macro spark__stamp() %}current_timestamp(){% endmacro %}

{% macro twice(x) %}{{ return(adapter.dispatch('twice', macro_namespace='shape')(x)) }}{% endmacro %}
{% macro default__twice(x) %}2 * {{ x }}{% endmacro %}

{% macro dialect() %}{{ return(adapter.dispatch('dialect', 'shape')()) }}{% endmacro %}
{% macro default__dialect() %}'default'{% endmacro %}
{% macro spark__dialect() %}'spark'{% endmacro %}
{% macro differential__dialect() %}'differential'{% endmacro %}
"""
STAGED = """
{% if target.type not in ('spark', 'databricks') %} no sql {% endif %}
select k, {{ shape.twice('v') }} as v, {{ shape.dialect() }} as dialect,
    cast({{ dbt.date_trunc('day', dbt.current_timestamp()) }} as date) as day, {{ shape.stamp() }} as loaded_at
from {{ ref('base') }}
where day <= current_date and {{ dbt.dateadd('day', 1, dbt.current_timestamp()) }} > day
    and {{ dbt.current_timestamp_in_utc_backcompat() }} >= day and {{ dbt.current_timestamp_backcompat() }} >= day
"""


def test_a_package_for_spark_runs_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    project = Project(tmp_path)
    enabled = "{{ target.type == 'spark' }}"
    package = {"name": "shape", "version": "1.0.0", "models": {"shape": {"+enabled": enabled}}}
    project.write("dbt_packages/shape/dbt_project.yml", yaml.safe_dump(package))
    project.write("dbt_packages/shape/macros/shape.sql", MACROS)
    project.write("dbt_packages/shape/models/staged.sql", STAGED)
    project.write("models/noted.sql", "select k, '{{ run_started_at }}' as at_ from {{ ref('base') }}")
    project.write("seeds/base.csv", "k,v,day\n1,10,2024-02-01\n2,20,2024-02-03\n")
    project.dbt("seed")
    project.dbt("run", "--vars", "{dd_time: '2024-02-01 12:00:00'}")
    assert [row[:4] for row in _staged(spark, project)] == [(1, 20, "differential", "2024-02-01")]
    result = project.dbt("run", "--vars", "{dd_time: '2024-02-03 12:00:00'}")
    assert strategies(result) == {"staged": "delta", "noted": "rebuild"}
    assert _staged(spark, project) == [
        (1, 20, "differential", "2024-02-03", 1706961600),
        (2, 40, "differential", "2024-02-03", 1706961600),
    ]
    assert "day, loaded_at is the time of the run" in result["staged"].message
    assert re.search(r"value of the invocation .*\{\{ dd_now\(\) \}\}", result["noted"].message)
    assert all(one.exact for one in verify(spark, Storage(str(tmp_path / ".dbt_incremental_dd"))))


def _staged(spark: SparkSession, project: Project) -> list[tuple[object, ...]]:
    sql = f"SELECT k, v, dialect, string(day), unix_seconds(loaded_at) FROM {project.schema}.staged"
    return sorted(tuple(row) for row in spark.sql(sql).collect())


TEXTS = [
    *("it's", "''", "'", "\\", "\\'", "a\\nb", "C:\\temp\\", "\\%\\_", "%", "%s %d %%", "{}", "{0} {x}", "{{ x }}"),
    *("${env:HOME}", "$", "two\nlines", "tab\there", 'a "quoted" word', ";", "a; b;", "-- no comment", "/* */"),
    *("Ünïcödé", "日本語", "🙂", "NULL", "None", "true", "e'", " spaces ", "?", ":named"),
]
NUMBERS = ["9007199254740993", "-9223372036854775807", "0", "9223372036854775807", "12345678901234567"]
FRACTIONS = ["0.1", "-2.5", "1e-7", "12345678.125", "3"]
MONEY = ["12345678901234567890.1234", "-0.0001", "1.5", "0", "99.99"]
TIMES = [
    "2024-02-29 23:59:59",
    "1970-01-01 00:00:00",
    "0999-01-01 00:00:01",
    "2024-06-01 12:00:00",
    "2262-04-12 00:00:00",
]
INSTANTS = [
    "2024-02-29T23:59:59.123456",
    "2024-01-01T00:00:00.000001",
    "2024-07-01T00:00:00.5",
    "1999-12-31T23:59:59",
    "",
]


def test_seeds_are_exact(spark: SparkSession, tmp_path: Path) -> None:
    """Value by value what agate makes of the CSV."""
    project = Project(tmp_path)
    header = ["id", "text", "n", "x", "money", "day", "at_", "instant", "flag", "zip", "nothing", "price"]
    types = {"money": "decimal(24,4)", "zip": "string", "price": "decimal(10,2)"}
    lines = [
        [
            *(i, text, NUMBERS[i % 5], FRACTIONS[i % 5], MONEY[i % 5], f"2024-02-{i % 28 + 1:02}", TIMES[i % 5]),
            *(INSTANTS[i % 5], ["true", "FALSE", ""][i % 3], f"00{i}", "", "" if i % 4 else "7.10"),
        ]
        for i, text in enumerate(TEXTS)
    ]
    path = tmp_path / "seeds/odd.csv"
    path.parent.mkdir()
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *lines])
    project.write("seeds/odd.yml", yaml.safe_dump({"seeds": [{"name": "odd", "config": {"column_types": types}}]}))
    project.write("models/over.sql", "select * from {{ ref('odd') }}")
    project.dbt("build")
    table = from_csv(str(path), text_columns=tuple(types))
    expected = [tuple(map(_typed, header, row)) for row in table.rows]
    assert len(expected) == len(TEXTS)
    times = {name: f"date_format({name}, 'yyyy-MM-dd HH:mm:ss.SSSSSS')" for name in ("at_", "instant")}
    shown = ", ".join(times.get(name, name) for name in header)
    for relation in ("odd", "over"):
        found = spark.sql(f"SELECT {shown} FROM {project.schema}.{relation} ORDER BY id").collect()
        assert [tuple(row) for row in found] == expected


def _typed(name: str, value: Any) -> Any:
    """What agate has read, in the type that the column has."""
    if value is None:
        return None
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="microseconds")
    if name in ("money", "price"):
        return Decimal(value).quantize(Decimal("0.0001" if name == "money" else "0.01"))
    return float(value) if name == "x" else value
