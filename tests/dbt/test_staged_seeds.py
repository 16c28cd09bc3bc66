"""Seeds are loaded without a session: their rows are computed on the driver, and the next session makes their tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.relation.due import DueRelations
from dbt_incremental_dd.relation.lazy_session import LazySession, SessionMemory
from dbt_incremental_dd.runtime.staging import can_wait
from tests.dbt.java_free import JavaFree
from tests.dbt.project import Project
from tests.oracle import difference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KINDS = """id,price,ratio,day,at,exact,is_open,name,code,few
1,12.50,1e-7,2024-02-29,2024-02-29 10:11:12,2024-02-29 10:11:12.123456,true,"O'Neill, ""J"" $x \\ y",007,1
2,,123456789012345678,,1999-12-31T23:59:59,2024-06-10 02:30:00,false,,x,2
3,-0.00,-1.5,1900-01-01,2024-07-01 00:00:00,,,  blank ,,
4,99999999.99,0.1,9999-12-31,,2024-12-03 01:30:00,true,"two
lines",4,-32768
"""
_KINDS_TYPES = """
seeds:
  - name: kinds
    config: {column_types: {price: "decimal(12,2)", code: string, few: smallint, ratio: double, exact: timestamp}}
"""
_HOOK = "\nseeds: {p: {+pre-hook: ['select 1']}}\n"
"""With a hook, Spark loads them."""


class _Seeds(JavaFree):
    def open_session(self, *statements: str) -> None:
        """A command that opens one, for some statements."""
        each = "{% for sql in statements %}{% do run_query(sql) %}{% endfor %}"
        self.project.write("macros/ask.sql", f"{{% macro ask(statements) %}}{each}{{% endmacro %}}")
        asked = json.dumps({"statements": ["show schemas", *statements]})
        self.dbt("run-operation", "ask", "--args", asked, java=True)

    def table(self, spark: SparkSession, name: str) -> DataFrame:
        """The rows of a table that is there."""
        return spark.read.parquet(str(self.state / "warehouse" / f"{self.project.schema}.db" / name))


@pytest.fixture
def seeds(tmp_path: Path) -> _Seeds:
    return _Seeds(tmp_path / "staged")


def test_tables_are_those_that_spark_loads(spark: SparkSession, seeds: _Seeds, tmp_path: Path) -> None:
    """In rows and types, for values of all kinds."""
    loaded = _Seeds(tmp_path / "loaded")
    for one in (seeds, loaded):
        one.project.write("seeds/kinds.csv", _KINDS)
        one.project.write("seeds/nothing.csv", "id,name\n")
        one.project.write("seeds/seeds.yml", _KINDS_TYPES)
    seeds.dbt("seed")
    loaded.project.write("dbt_project.yml", (loaded.folder / "dbt_project.yml").read_text() + _HOOK)
    loaded.dbt("seed", java=True)
    shown = seeds.dbt("show", "--select", "kinds", "--output", "json", "--log-format", "text")
    seeds.open_session()
    ours, theirs = seeds.table(spark, "kinds"), loaded.table(spark, "kinds")
    assert ours.schema == theirs.schema and difference(ours, theirs) == ([], [])
    rows = json.loads(shown[shown.index("{") :])["show"]
    assert sorted(row["id"] for row in rows) == [1, 2, 3, 4] == sorted(row.id for row in theirs.collect())
    empty = f"select count(*) as n from {seeds.project.schema}.nothing"
    assert '"n": 0' in seeds.dbt("show", "--inline", empty, "--output", "json", "--log-format", "text")


def test_models_and_tests_read_them(spark: SparkSession, seeds: _Seeds) -> None:
    """From the first build on, whatever changes; a table beside them finds them as well."""
    seeds.project.write("seeds/parts.csv", "id,kind,price\n1,a,1.5\n2,b,2.5\n3,a,3.5\n")
    seeds.project.write("seeds/seeds.yml", "seeds: [{name: parts, columns: [{name: id, data_tests: [unique]}]}]")
    seeds.project.write("models/kinds.sql", "select kind, sum(price) as price from {{ ref('parts') }} group by kind")
    assert "INSERT 3" in seeds.dbt("build")
    seeds.verify(spark, 1)
    assert "UNCHANGED 3" in seeds.dbt("build")
    seeds.project.write("seeds/parts.csv", "id,kind,price\n1,a,1.5\n3,b,3.5\n4,b,0.5\n5,,9\n")
    assert "INSERT 4" in seeds.dbt("build")
    seeds.verify(spark, 1)
    seeds.project.write("seeds/parts.csv", "id,kind,price\n1,a,1.5\n1,b,3.5\n")
    assert "Got 1 result" in seeds.dbt("build", code=1)
    seeds.project.write("seeds/parts.csv", "id,kind,price\n1,a,1.5\n4,b,3.5\n")
    plain = "{{ config(materialized='table') }} select count(*) as n from {{ ref('parts') }}"
    seeds.project.write("models/plain.sql", plain)
    seeds.dbt("build", java=True)
    assert [row.n for row in seeds.table(spark, "plain").collect()] == [2]
    seeds.verify(spark, 1)
    assert "UNCHANGED 2" in seeds.dbt("build", "--exclude", "plain")


def test_tables_that_somebody_changes_are_loaded_again(spark: SparkSession, seeds: _Seeds) -> None:
    seeds.project.write("seeds/parts.csv", "id\n1\n2\n")
    seeds.project.write("models/total.sql", "select sum(id) as total from {{ ref('parts') }}")
    seeds.dbt("build")
    assert "CREATE 2" in seeds.dbt("seed", "--full-refresh")
    seeds.open_session(f"insert into {seeds.project.schema}.parts values (7)")
    assert seeds.table(spark, "parts").count() == 3
    seeds.dbt("run", java=True)
    seeds.verify(spark, 1)
    assert "INSERT 2" in seeds.dbt("seed")
    seeds.dbt("run")
    seeds.verify(spark, 1)
    seeds.open_session()
    assert seeds.table(spark, "parts").count() == 2


def test_what_spark_has_to_load_it_loads(spark: SparkSession, seeds: _Seeds) -> None:
    """Types that only it knows, partitions, names with blanks."""
    seeds.project.write("seeds/odd.csv", "id,odd name\n1,x\n")
    seeds.project.write("seeds/short.csv", "id,text\n1,x\n")
    seeds.project.write("seeds/parted.csv", "id,part\n1,x\n2,y\n")
    seeds.project.write(
        "seeds/seeds.yml",
        "seeds: [{name: short, config: {column_types: {text: varchar(9)}}}, {name: parted, config: {partition_by: part}}]",
    )
    text = seeds.dbt("seed", "--exclude", "odd", java=True)
    assert "INSERT 1" in text and "INSERT 2" in text
    assert seeds.table(spark, "parted").where("part = 'y'").count() == 1


def test_rows_that_are_lost_are_loaded_again(seeds: _Seeds) -> None:
    """A session that finds none leaves the table due."""
    seeds.project.write("seeds/parts.csv", "id\n1\n2\n")
    seeds.dbt("seed")
    for file in (seeds.state / "seeds").rglob("*.parquet"):
        file.unlink()
    seeds.open_session()
    assert "INSERT 2" in seeds.dbt("seed")
    count = f"select count(*) as n from {seeds.project.schema}.parts"
    assert '"n": 2' in seeds.dbt("show", "--inline", count, "--output", "json", "--log-format", "text")


class _Configured(SessionMemory):
    """Of a catalog that only our sessions read, with nothing in it yet."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self._due, self._settings = DueRelations(str(folder)), settings

    def configured(self, name: str) -> str:
        return self._settings.get(name.rsplit(".", 1)[-1], "")

    @property
    def due(self) -> DueRelations:
        return self._due

    def relation_type(self, schema: str, name: str) -> str | None:
        return "view" if name == "shown" else ""


def test_tables_of_another_format_are_spark_s(tmp_path: Path) -> None:
    def can(name: str = "parts", **settings: str) -> bool:
        return can_wait(LazySession(pytest.fail, _Configured(tmp_path, **settings)), f"s.{name}")

    assert can() and can(default="parquet")
    assert not can(default="orc") and not can(createHiveTableByDefault="true") and not can("shown")
    assert not can("`a.b`") and not can("other.parts")
    assert not can_wait(LazySession(pytest.fail), "s.parts"), "others read the catalog"


def test_an_open_session_makes_the_tables_of_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    """At once, in rows and types as Spark loads them; a table that is there is replaced, and a view is not."""
    ours, theirs = Project(tmp_path / "ours"), Project(tmp_path / "theirs")
    for project in (ours, theirs):
        project.write("seeds/kinds.csv", _KINDS)
        project.write("seeds/nothing.csv", "id,name\n")
        project.write("seeds/seeds.yml", _KINDS_TYPES)
        project.write("models/prices.sql", "select code, sum(price) as price from {{ ref('kinds') }} group by code")
    theirs.write("dbt_project.yml", (theirs.folder / "dbt_project.yml").read_text() + _HOOK)
    for added in ("", "5,7.25,2,2024-03-01,2024-03-01 00:00:00,,false,n,007,9\n"):
        for project in (ours, theirs):
            project.write("seeds/kinds.csv", _KINDS + added)
            assert project.dbt("build")["kinds"].adapter_response["rows_affected"] == 4 + bool(added)
        for name in ("kinds", "nothing", "prices"):
            one, other = (spark.table(f"{project.schema}.{name}") for project in (ours, theirs))
            assert one.schema == other.schema and difference(one, other) == ([], []), name
    assert [(project.folder / ".dbt_incremental_dd/seeds").exists() for project in (ours, theirs)] == [True, False]
    spark.sql(f"create view {ours.schema}.seen as select 1 as id")
    ours.write("seeds/seen.csv", "id\n1\n")
    assert "is a view" in str(ours.dbt("seed", "--select", "seen", fails=True))


def test_a_table_that_spark_refuses_is_told_of(spark: SparkSession, tmp_path: Path) -> None:
    """And made by the next load, once it can be."""
    project = Project(tmp_path / "refused")
    project.write("seeds/parts.csv", "id\n1\n")
    spark.sql(f"create schema {project.schema}")
    told = {row.info_name: row.info_value for row in spark.sql(f"describe schema {project.schema}").collect()}
    in_the_way = Path(told["Location"].removeprefix("file:")) / "parts" / "other.txt"
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("of somebody else")
    told = project.dbt("seed", fails=True)
    assert "parts: Spark cannot make the seed's table: [LOCATION_ALREADY_EXISTS]" in str(told)
    in_the_way.unlink()
    assert project.dbt("seed")["parts"].adapter_response["rows_affected"] == 1
    assert spark.table(f"{project.schema}.parts").count() == 1
