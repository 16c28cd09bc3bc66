"""Any column name works, in sources of every envelope and in models, or is refused by name with a remedy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import dbt_incremental_dd
from dbt_incremental_dd.core.errors import ConfigError, SourceError, UnsupportedSQL
from dbt_incremental_dd.core.schema import is_reserved
from tests.oracle import Table, World
from tests.sources.test_intake import Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = "\n".join(path.read_text() for path in sorted(Path(dbt_incremental_dd.__file__).parent.rglob("*.py")))
RESERVED = sorted({name.rstrip("{") for name in re.findall(r"""["'`](dd_[a-z_0-9]*)""", SOURCE)} - {"dd_"})
USED = sorted(
    set(re.findall(r"""(?:alias|col|withColumn|append_column|Column)\(\s*f?["']([a-z][a-z_0-9]*)["']""", SOURCE))
)
"""Names of columns that the package itself computes: those that are reserved, and others."""
ODD = [
    "C1",
    "c12",
    "v_c1",
    "one",
    "n",
    "a b",
    "a.b",
    "x`y",
    "ü ñ",
    "select",
    "From",
    "1st",
    "d-d",
    "ddtime",
    "_dd_time",
    "$x",
    "it's",
    "key",
]
NAMES = list({name.lower(): name for name in [*(n for n in USED if not n.startswith("dd_")), *ODD]}.values())
ENVELOPES: dict[str, dict[str, Any]] = {
    "append": {},
    "snapshot": {},
    "upsert": {"key": ["id"], "order_by": ["id"], "deleted_when": "false"},
    "debezium": {"key": ["id"]},
    "changelog": {"diff_column": "change"},
}


def quoted(name: str) -> str:
    """The name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def test_internal_names_are_reserved() -> None:
    assert all(is_reserved(name) and is_reserved(name.upper()) for name in RESERVED)
    assert not any(is_reserved(name) for name in [*NAMES, "ddtime", "xdd_time", "dd"])
    assert {"dd_time", "dd_diff", "dd_position", "dd_alive", "dd_rank", "dd_old", "dd_dead"} <= set(RESERVED)
    assert len(RESERVED) > 60 and len(USED) > 10


def test_models_have_columns_of_any_name(spark: SparkSession, tmp_path: Path) -> None:
    """Through projections, groups, windows, joins and set operations."""
    columns = ["id", *NAMES]
    ddl = ", ".join(f"{quoted(name)} INT" for name in columns)
    world = World(spark, tmp_path, {"t": Table(ddl)})
    every = ", ".join(map(quoted, columns))
    world.model("everything", "SELECT * FROM {t}")
    world.model("groups", f"SELECT {every}, count(*) AS `count` FROM {{t}} GROUP BY {every}")
    some = [NAMES[0], *ODD[:6]]
    lagged = ", ".join(f"lag({quoted(name)}) OVER (ORDER BY id) AS {quoted(name)}" for name in some)
    world.model("windows", f"SELECT id, {lagged} FROM {{t}}")
    world.model(
        "joined", f"SELECT a.*, b.`one` AS `the other` FROM {{t}} a LEFT JOIN {{t}} b ON a.{quoted(NAMES[0])} = b.id"
    )
    world.insert("t", [(i, *(i + j for j in range(len(NAMES)))) for i in range(4)])
    world.step_exactly(0)
    world.delete("t", [world.tables["t"].rows[1]])
    world.insert("t", [(7, *([None] * len(NAMES)))])
    world.step_exactly(1)


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_sources_have_columns_of_any_name(spark: SparkSession, tmp_path: Path, envelope: str) -> None:
    reader = Reader(spark, tmp_path, {}, envelope=envelope, **ENVELOPES[envelope])
    for number in range(2):
        rows = [{"id": i, **{name: i + j + number for j, name in enumerate(NAMES)}} for i in range(2 + number)]
        reader.write("1.json" if envelope == "snapshot" else f"{number}.json", [_record(row, envelope) for row in rows])
        reader.take()
    found = reader.rows()
    assert all(len(row) == 1 + len(NAMES) for row in found)
    assert found.total() == {"append": 5, "changelog": 5}.get(envelope, 3)


def _record(row: dict[str, Any], envelope: str) -> dict[str, Any]:
    if envelope == "debezium":
        return {"before": None, "after": row, "op": "c", "source": {"lsn": row[NAMES[0]]}}
    return {**row, "change": 1} if envelope == "changelog" else row


def test_reserved_names_are_refused_in_models(spark: SparkSession, tmp_path: Path) -> None:
    world = World(spark, tmp_path, {"t": Table("id INT")})
    for name in [*RESERVED[::12], "DD_Time", "dd_diff", "dd_mine"]:
        world.models = {"m": f"SELECT id AS {quoted(name)} FROM {{t}}"}
        with pytest.raises(UnsupportedSQL, match=f"m has a column called {name}, .*reserved(.|\n)*alias"):
            world.step()


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_reserved_names_are_refused_in_sources(spark: SparkSession, tmp_path: Path, envelope: str) -> None:
    with pytest.raises(ConfigError, match=r"s.t: column DD_rank has a reserved name(.|\n)*Rename"):
        Reader(spark, tmp_path, {"id": "int", "DD_rank": "int"}, envelope=envelope, **ENVELOPES[envelope])
    for name in ["dd_time", "Dd_Diff", "dd_position", "dd_file"]:
        (tmp_path / name / "in").mkdir(parents=True)
        reader = Reader(spark, tmp_path / name, {}, envelope=envelope, **ENVELOPES[envelope])
        reader.write("1.json", [_record({"id": 1, NAMES[0]: 1, name: 2}, envelope)])
        with pytest.raises(SourceError, match=f"s.t: column {name} has a reserved name(.|\n)*Rename"):
            reader.take()
