"""dbt's standard configs and commands over differential models: each is done, refused with a remedy, or warned of.

The rows here are those of the table in docs/models.md, which is checked against them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from dbt_incremental_dd.core import failpoints
from tests.dbt.project import Project, rows, strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SELECT = "select k, v, s from {{ source('raw', 'events') }}"
TYPED = {"k": "int", "v": "bigint", "s": "string"}
SOURCES: dict[str, Any] = {
    "name": "raw",
    "schema": "",
    "tables": [
        {
            "name": "events",
            "columns": [{"name": name, "data_type": dtype} for name, dtype in {"id": "int", **TYPED}.items()],
            "config": {
                "meta": {"differential": {"envelope": "upsert", "key": "id", "path": "data/e", "format": "json"}}
            },
        }
    ],
}

WORKS: dict[str, dict[str, Any]] = {
    "persist_docs": {"persist_docs": {"relation": True, "columns": True}},
    "pre-hook": {
        "pre_hook": [
            "insert into {{ this.schema }}.before_it select 2",
            {"sql": "create table if not exists {{ this.schema }}.before_it as select 1 as n", "transaction": False},
        ]
    },
    "post-hook": {
        "post_hook": [
            {
                "sql": "create table if not exists {{ this.schema }}.after_it as select * from {{ this.schema }}.counted",
                "transaction": False,
            },
            "create or replace view {{ this.schema }}.counted as select count(*) as n from {{ this }}",
        ]
    },
    "tblproperties": {"tblproperties": {"owner.team": "it's ours", "checked": True}},
    "alias": {"alias": "another_name"},
    "schema": {"schema": "beside"},
    "tags": {"tags": ["nightly"]},
    "meta": {"meta": {"any": "thing"}},
    "enabled": {"enabled": False},
    "group, access": {"group": "g", "access": "private"},
    "docs": {"docs": {"show": False, "node_color": "#fff"}},
    "event_time": {"event_time": "v"},
    "full_refresh": {"full_refresh": False},
    "on_schema_change": {"on_schema_change": "append_new_columns"},
    "contract": {"contract": {"enforced": True}},
}
"""Configs that do what they do in any model."""

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unique_key": ({"unique_key": "k"}, "unique_key means nothing .*worked out from the SQL.*primary_key"),
    "merge_update_columns": ({"merge_update_columns": ["v"]}, "merge_update_columns means nothing .*Remove it"),
    "merge_exclude_columns": ({"merge_exclude_columns": ["v"]}, "merge_exclude_columns means nothing .*Remove it"),
    "incremental_predicates": ({"incremental_predicates": ["v > 1"]}, "incremental_predicates means nothing"),
    "predicates": ({"predicates": ["v > 1"]}, "predicates means nothing"),
    "begin": ({"begin": "2020-01-01"}, "begin means nothing .*WHERE ts >="),
    "batch_size": ({"batch_size": "day"}, "batch_size means nothing"),
    "lookback": ({"lookback": 3}, "lookback means nothing .*come late"),
    "partition_by": ({"partition_by": "k"}, "partition_by means nothing .*arranged_by"),
    "clustered_by": ({"clustered_by": ["k"]}, "clustered_by means nothing .*arranged_by"),
    "buckets": ({"buckets": 8}, "buckets means nothing .*arranged_by"),
    "indexes": ({"indexes": [{"columns": ["k"]}]}, "indexes means nothing .*arranged_by"),
    "sql_header": ({"sql_header": "set a = 1;"}, "sql_header means nothing .*pre_hook"),
    "column_types": ({"column_types": {"k": "bigint"}}, "column_types means nothing .*cast the columns"),
    "database": ({"database": "other"}, "database means nothing .*Set `schema`"),
    "grants": ({"grants": {"select": ["someone"]}}, "grants are set, but this Spark .*Remove `grants`"),
    "on_schema_change: unknown": ({"on_schema_change": "append"}, "on_schema_change is 'append'.*sync_all_columns"),
    "persist_docs: unknown": ({"persist_docs": {"relations": True}}, "persist_docs is .*relation: true"),
    "tblproperties: nested": ({"tblproperties": {"a": {"b": 1}}}, "tblproperties is .*name: value"),
}

WARNED: dict[str, tuple[Any, str]] = {
    "file_format": ("delta", "Parquet files with a Delta log"),
    "location_root": ("/somewhere", "state_root"),
    "options": ({"compression": "gzip"}, "the relation is a view"),
    "incremental_strategy": ("merge", "worked out from the SQL"),
    "concurrent_batches": (True, "no batches"),
    "on_configuration_change": ("fail", "materialized views"),
}
"""As a project's default for all models."""

CONSTRAINTS: dict[str, tuple[dict[str, Any], str]] = {
    "not_null": ({"column": {"type": "not_null"}}, r"constraint not_null on k is violated by rows: \(k: NULL, v: 9"),
    "check": (
        {"column": {"type": "check", "expression": "k > 0", "name": "over"}},
        r"constraint over, check \(k > 0\) is violated by rows: \(k: -1, v: 5, s: e\)",
    ),
    "unique": (
        {"model": {"type": "unique", "columns": ["v", "s"]}},
        "unique on v, s .*more than once: .*v: 5, s: e.*v: 5, s: e",
    ),
    "primary_key": (
        {"model": {"type": "primary_key", "columns": ["s"]}},
        r"primary_key on s is violated by rows: \(k: NULL, v: 9, s: NULL\)",
    ),
    "check of several columns": (
        {"model": {"type": "check", "expression": "v < 9 or s is not null", "name": "both"}},
        r"constraint both, check \(v < 9 or s is not null\) is violated by rows: \(k: NULL, v: 9, s: NULL\)",
    ),
}
UNENFORCED: dict[str, tuple[dict[str, Any], str]] = {
    "foreign_key": (
        {"column": {"type": "foreign_key", "expression": "other (k)", "name": "fk"}},
        "constraint fk foreign_key on k cannot be enforced.*`relationships` test.*warn_unsupported: false",
    ),
    "custom": ({"column": {"type": "custom", "expression": "tag x"}}, "custom on k cannot be enforced.*Remove it"),
    "check: no expression": ({"column": {"type": "check"}}, "check on k has no expression.*Write the condition"),
    "unique: expression": (
        {"column": {"type": "unique", "expression": "rely"}},
        "has an expression, 'rely'.*Remove it",
    ),
    "unique: no columns": ({"model": {"type": "unique"}}, "unique names no columns"),
}


PYTHON = """
def model(dbt, session):
    dbt.config(materialized="differential")
    return session.range(1)
"""


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path) -> Project:
    """One upsert source of four rows."""
    project = Project(tmp_path)
    put_first(project)
    return project


def put_first(project: Project) -> None:
    """Four rows."""
    put(project, 1, *((i, i, i, "abcd"[i - 1]) for i in range(1, 5)))


def put(project: Project, number: int, *records: tuple[Any, ...]) -> None:
    """A file of records: id, k, v, s."""
    project.records(f"data/e/{number}.json", [dict(zip(("id", *TYPED), record, strict=True)) for record in records])


def declare(project: Project, models: list[dict[str, Any]], **more: Any) -> None:
    """The project's only YAML file."""
    source = {**SOURCES, "schema": f"{project.schema}raw"}
    project.write("models/all.yml", yaml.safe_dump({"sources": [source], "models": models, **more}, sort_keys=False))


def model(name: str, constraint: dict[str, Any] | None = None, **config: Any) -> dict[str, Any]:
    """A model's properties: all its columns are described; with a constraint, under a contract."""
    columns = [{"name": c, "data_type": t, "description": f"It's {c}\\{c}."} for c, t in TYPED.items()]
    given = constraint or {}
    found: dict[str, Any] = {"name": name, "description": "What 'it' is.", "columns": columns, "config": config}
    if "column" in given:
        columns[0]["constraints"] = [given["column"]]  # type: ignore[assignment]
    if "model" in given:
        found["constraints"] = [given["model"]]
    if constraint:
        config["contract"] = {"enforced": True}
    return found


def named(key: str) -> str:
    return re.sub(r"\W+", "_", key)


def described(spark: SparkSession, relation: str) -> dict[str, Any]:
    """Comments of columns, the relation's own, and its properties."""
    told = spark.sql(f"DESCRIBE TABLE EXTENDED {relation}").collect()
    return {row["col_name"]: row["comment"] if row["col_name"] in TYPED else row["data_type"] for row in told}


def test_what_works(project: Project, spark: SparkSession) -> None:
    for key in WORKS:
        project.write(f"models/{named(key)}.sql", SELECT)
    models = [model(named(key), **config) for key, config in WORKS.items()]
    declare(project, models, groups=[{"name": "g", "owner": {"name": "me", "email": "me@here"}}])
    results = project.dbt("run")
    assert not project.warnings
    assert set(results) == {named(key) for key in WORKS} - {"enabled"}
    expected = [(i, i, "abcd"[i - 1]) for i in range(1, 5)]
    where = {"alias": ("", "another_name"), "schema": ("_beside", "schema")}
    for name in results:
        schema, relation = where.get(name, ("", name))
        assert sorted(map(tuple, spark.table(f"{project.schema}{schema}.{relation}").collect())) == expected
    assert rows(spark, project, "before_it") == [(1,), (2,)]
    assert rows(spark, project, "after_it") == [(4,)], "after the model, and after what is inside of a transaction"
    told = described(spark, f"{project.schema}.persist_docs")
    assert told["Comment"] == "What 'it' is." and {told[c] for c in TYPED} == {f"It's {c}\\{c}." for c in TYPED}
    properties = dict(tuple(row) for row in spark.sql(f"SHOW TBLPROPERTIES {project.schema}.tblproperties").collect())
    assert properties["owner.team"] == "it's ours" and properties["checked"] == "true"
    project.dbt("list", "--select", "tag:nightly")
    assert project.last.result == ["p.tags"]

    put(project, 2, (5, 5, 5, "e"))
    project.write("models/on_schema_change.sql", SELECT.replace("s from", "s, 1 as one from"))
    models[list(WORKS).index("persist_docs")]["columns"][0]["description"] = "Another."
    declare(project, models, groups=[{"name": "g", "owner": {"name": "me"}}])
    results = project.dbt("run", "--full-refresh")
    assert strategies(results)["full_refresh"] == "delta", "config(full_refresh=false) comes before the flag"
    assert strategies(results)["tags"] == "rebuild"
    assert spark.table(f"{project.schema}.on_schema_change").columns == ["k", "v", "s", "one"]
    assert described(spark, f"{project.schema}.persist_docs")["k"] == "Another."

    project.write("models/on_schema_change.sql", SELECT)
    project.write("models/full_refresh.sql", SELECT + " where k > 1")
    declare(project, models, groups=[{"name": "g", "owner": {"name": "me"}}])
    messages = project.dbt("run", fails=True)
    refused = messages["on_schema_change"]
    assert re.search("(?s)gone: one.*append_new_columns.*sync_all_columns", refused), refused
    assert messages["full_refresh"].endswith("; rebuild: its SQL has changed"), messages["full_refresh"]
    assert len(rows(spark, project, "full_refresh")) == 4


def test_comments_follow_their_model_and_cost_nothing_where_nothing_changed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    project = Project(tmp_path, thresholds={"summed_rows": 0})
    put_first(project)
    monkeypatch.setattr(failpoints, "_watcher", lambda name: made.append(name) if name.startswith("view: ") else None)
    project.write("models/m.sql", SELECT)
    wide = model("m", persist_docs={"relation": True, "columns": True}, file_format="delta")
    wide["columns"].append({"name": "absent", "description": "Nowhere.", "data_type": "int"})
    wide["columns"][1]["description"] = "x" * 300
    declare(project, [wide])
    project.dbt("run")
    assert described(spark, f"{project.schema}.m")["v"] == "x" * 300
    assert any("absent" in line for line in project.warnings), project.warnings
    made.clear()
    assert strategies(project.dbt("run")) == {"m": "skip"}
    put(project, 2, (5, 5, 5, "e"))
    assert strategies(project.dbt("run")) == {"m": "delta"}
    assert made == [] and not any("absent" in line for line in project.warnings)
    put(project, 3, (5, 5, 6, "e"))
    project.dbt("run")
    assert made, "rows that go have to be summed up: the view is another one"
    assert described(spark, f"{project.schema}.m")["k"] == "It's k\\k."
    declare(project, [model("m")])
    assert strategies(project.dbt("run")) == {"m": "skip"}
    told = described(spark, f"{project.schema}.m")
    assert told["k"] is None and "Comment" not in told


def test_what_is_refused(project: Project, spark: SparkSession) -> None:
    for key in REFUSED:
        project.write(f"models/{named(key)}.sql", SELECT)
    for key in UNENFORCED:
        project.write(f"models/{named('constraint ' + key)}.sql", SELECT)
    project.write("models/in_python.py", PYTHON)
    refused = [model(named(key), **config) for key, (config, _) in REFUSED.items()]
    unenforced = [model(named("constraint " + key), given) for key, (given, _) in UNENFORCED.items()]
    declare(project, [*refused, *unenforced])
    messages = project.dbt("run", fails=True)
    wanted = {named(key): text for key, (_, text) in REFUSED.items()}
    wanted |= {named("constraint " + key): text for key, (_, text) in UNENFORCED.items()}
    wanted["in_python"] = "only supports languages .*sql.*got .python"
    wrong = {name: messages[name] for name, text in wanted.items() if not re.search(f"(?s){text}", messages[name])}
    assert not wrong
    made = {row["viewName"] for row in spark.sql(f"SHOW VIEWS IN {project.schema}").collect()}
    assert not made & set(wanted), "nothing is made"
    for one in unenforced[:2]:
        one["columns"][0]["constraints"][0]["warn_unsupported"] = False
    declare(project, [*refused, *unenforced])
    project.dbt("run", "--select", *(one["name"] for one in unenforced[:2]))


def test_what_is_warned_of_once(project: Project, spark: SparkSession) -> None:
    settings = {"name": "p", "profile": "p", "flags": {"send_anonymous_usage_stats": False}}
    defaults = {f"+{key}": value for key, (value, _) in WARNED.items()}
    project.write(
        "dbt_project.yml", yaml.safe_dump({**settings, "models": {"+materialized": "differential", **defaults}})
    )
    for name in ("one", "two"):
        project.write(f"models/{name}.sql", SELECT)
    loose = model("one", {"column": {"type": "not_null"}})
    loose["config"] = {}
    declare(project, [loose])
    assert strategies(project.dbt("run")) == {"one": "initial", "two": "initial"}
    for key, (_, why) in WARNED.items():
        found = [line for line in project.warnings if f"{key}:" in line and "has no effect" in line]
        assert len(found) == 1 and why in found[0], project.warnings
    assert len([line for line in project.warnings if "constraints are not enforced" in line]) == 1
    project.dbt("run")
    assert not [line for line in project.warnings if "no effect" in line or "not enforced" in line]
    assert len(rows(spark, project, "two")) == 4


def test_constraints_of_contracts(project: Project, spark: SparkSession) -> None:
    for key in CONSTRAINTS:
        project.write(f"models/{named(key)}.sql", SELECT)
    project.write("models/below.sql", "select count(*) as n from {{ ref('unique') }}")
    project.write("models/other_type.sql", SELECT.replace("v,", "cast(v as int) as v,"))
    declare(project, [*(model(named(key), given) for key, (given, _) in CONSTRAINTS.items()), model("other_type")])
    project.dbt("run", "--exclude", "other_type")
    put(project, 2, (5, -1, 5, "e"), (6, 6, 5, "e"), (7, None, 9, None))
    contract = model("other_type", {"column": {"type": "not_null"}})
    declare(project, [*(model(named(key), given) for key, (given, _) in CONSTRAINTS.items()), contract])
    messages = project.dbt("run", fails=True)
    for key, (_, text) in CONSTRAINTS.items():
        assert re.search(f"(?s){text}.*Nothing of this run is stored", messages[named(key)]), messages[named(key)]
        assert len(rows(spark, project, named(key))) == 4
    assert "skipped" in str(messages["below"]).lower() or messages["below"] == "None"
    assert re.search(r"(?s)v.*int.*bigint.*data type mismatch", messages["other_type"]), messages["other_type"]
    put(project, 3, (5, -1, None, "z"), (7, None, None, None))
    left = project.dbt("run", "--select", "unique", "below", "check_of_several_columns")
    assert set(strategies(left).values()) == {"delta"}
    assert rows(spark, project, "below") == [(7,)]
    project.dbt("run", "--empty", "--select", "unique")


def test_clone_and_snapshot(project: Project, spark: SparkSession) -> None:
    project.write("models/totals.sql", "select s, sum(v) as v from {{ source('raw', 'events') }} group by s")
    project.write("models/plain.sql", "{{ config(materialized='table') }} select 1 as one")
    project.write("models/over.sql", "select sum(v) as v from {{ ref('totals') }}")
    project.write("snapshots/kept.yml", yaml.safe_dump(SNAPSHOT))
    declare(project, [])
    project.dbt("run")
    assert strategies(project.dbt("snapshot")) == {"kept": "initial"}
    (project.folder / "target" / "manifest.json").rename(project.folder / "manifest.json")
    state = ("--state", str(project.folder))
    project.dbt("clone", "--select", "totals", "--full-refresh", *state)
    expected = [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
    assert rows(spark, project, "totals") == expected, "of itself there is no clone"
    former = project.schema
    profile = (project.folder / "profiles.yml").read_text().replace(f"schema: {former}", f"schema: {former}dev")
    project.write("profiles.yml", profile)
    project.dbt("clone", "--select", "totals", *state)
    project.schema = f"{former}dev"
    assert rows(spark, project, "totals") == expected
    assert project.dbt("clone", "--select", "totals", "--full-refresh", *state)
    message = project.dbt("run", "--select", "over", fails=True)["over"]
    assert re.search(r"totals, which has not been built yet\s+Run it first: .*\+over", message), message
    assert strategies(project.dbt("run", "--select", "over", "--defer", "--favor-state", *state)) == {"over": "initial"}
    assert rows(spark, project, "over") == [(10,)]
    message = project.dbt("clone", "--select", "plain", *state, fails=True)["plain"]
    assert "shallow clone requires file_format be set to 'delta'" in message
    assert strategies(project.dbt("run", "--select", "totals")) == {"totals": "initial"}
    assert rows(spark, project, "totals") == expected
    assert spark.table(f"{project.schema}.totals__changes").count() == 4


SNAPSHOT = {
    "snapshots": [
        {
            "name": "kept",
            "relation": "ref('totals')",
            "config": {"unique_key": "s", "strategy": "check", "check_cols": "all"},
        }
    ]
}


def test_the_docs_have_every_config() -> None:
    text = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
    every = {*WORKS, *REFUSED, *WARNED, *CONSTRAINTS, *UNENFORCED}
    missing = [key for key in every for name in key.split(":")[0].split(", ") if f"`{name}`" not in text]
    assert not [key for key in missing if " of " not in key], json.dumps(missing)
