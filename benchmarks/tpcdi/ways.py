"""The warehouse as dbt projects of several materializations, over the same files.

``differential``: plain selects, which the engine keeps up to date. ``table``: the same selects, each day built anew
from all files. ``incremental``: 20 models written by hand over Delta tables, which append what came, merge by key and
look back a few days; the others, which are small, are built anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from benchmarks.compared import DELTA_SETTINGS, has_delta, write_yaml

_HERE = Path(__file__).parent
_OVERLAYS = {"differential": (), "table": ("rebuilt",), "incremental": ("rebuilt", "by_hand")}
"""Folders whose files take the place of the project's own."""
WAYS = tuple(_OVERLAYS)
MODELS = sorted(path.stem for path in (_HERE / "project" / "models").rglob("*.sql"))
SCHEMA = "tpcdi"


def possible(way: str) -> bool:
    """Whether the Spark that is installed can do it."""
    return way != "incremental" or has_delta()


def write_project(way: str, folder: Path, data: Path) -> None:
    """The project; its ``data`` are those."""
    for overlay in ("project", *_OVERLAYS[way]):
        shutil.copytree(_HERE / overlay, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("target", "logs"))
    (folder / "data").symlink_to(data)
    if way == "differential":
        return
    sources = yaml.safe_load((folder / "models" / "sources.yml").read_text())
    config = yaml.safe_load((folder / "dbt_project.yml").read_text())
    config["on-run-start"] = list(_tables(sources, data))
    config["models"]["tpcdi"]["+materialized"] = "table"
    for table in sources["sources"][0]["tables"]:
        del table["config"]
    write_yaml(folder / "models" / "sources.yml", sources)
    if way == "incremental":
        config["models"]["tpcdi"]["+file_format"] = "delta"
        profiles = yaml.safe_load((folder / "profiles.yml").read_text())
        profiles["tpcdi"]["outputs"]["dev"]["server_side_parameters"] = {
            **DELTA_SETTINGS,
            "spark.databricks.delta.snapshotPartitions": "2",  # by default a small log is read in 50 tasks
        }
        write_yaml(folder / "profiles.yml", profiles)
    write_yaml(folder / "dbt_project.yml", config)


def _tables(sources: dict[str, Any], data: Path) -> Iterator[str]:
    """Statements that make the sources' files tables of the catalog."""
    (source,) = sources["sources"]
    yield f"create schema if not exists {source['schema']}"
    for table in source["tables"]:
        columns = ", ".join(f"{column['name']} {column['data_type']}" for column in table["columns"])
        given = table["config"]["meta"]["differential"].get("options", {})
        options = "".join(f", '{name}' = '{value}'" for name, value in given.items())
        place = f"'path' = '{data / table['name']}'{options}"
        yield f"create table if not exists {source['schema']}.{table['name']} ({columns}) using csv options ({place})"
