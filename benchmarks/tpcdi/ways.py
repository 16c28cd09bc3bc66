"""The warehouse as dbt projects of several materializations, over the same files.

``differential``: plain selects, which the engine keeps up to date. ``table``: the same selects, each day built anew
from all files. ``views``: those of the layers ``bronze`` and ``silver`` as views, and tables of the others.
``duckdb``: the selects in DuckDB's words, built anew by it, without dbt. ``incremental``: 20 models written by hand
over Delta tables, which append what came, merge by key and look back a few days; the others, which are small, are built
anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from benchmarks.compared import DELTA_SETTINGS, has_delta, write_yaml

_HERE = Path(__file__).parent
_OVERLAYS: dict[str, tuple[str, ...]] = {
    "differential": (),
    "table": ("rebuilt",),
    "views": ("rebuilt",),
    "duckdb": ("rebuilt",),
    "incremental": ("rebuilt", "by_hand"),
}
"""Folders whose files take the place of the project's own."""
WAYS = tuple(_OVERLAYS)
_VIEWED = ("bronze", "silver")
_LAYERS = {path.stem: path.parent.name for path in (_HERE / "project" / "models").rglob("*.sql")}
MODELS = sorted(_LAYERS)
SCHEMA = "tpcdi"
EVENTS = "events"


def possible(way: str) -> bool:
    """Whether the Spark that is installed can do it."""
    return way != "incremental" or has_delta()


def stored(way: str) -> list[str]:
    """The models of which it keeps rows."""
    return [model for model in MODELS if way != "views" or _LAYERS[model] not in _VIEWED]


def write_project(way: str, folder: Path, data: Path, strategy: str = "auto") -> None:
    """The project; its ``data`` are those. ``strategy``: of differential models.

    What Spark does for the others is noted in ``events``, by its own log.
    """
    for overlay in ("project", *_OVERLAYS[way]):
        shutil.copytree(_HERE / overlay, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("target", "logs"))
    (folder / "data").symlink_to(data)
    config = yaml.safe_load((folder / "dbt_project.yml").read_text())
    if way == "differential":
        config["models"]["tpcdi"]["+strategy"] = strategy
        write_yaml(folder / "dbt_project.yml", config)
    if way in ("differential", "duckdb"):
        return
    (folder / EVENTS).mkdir()
    sources = yaml.safe_load((folder / "models" / "sources.yml").read_text())
    config["on-run-start"] = list(_tables(sources, data))
    config["models"]["tpcdi"]["+materialized"] = "table"
    for table in sources["sources"][0]["tables"]:
        del table["config"]
    if way == "views":
        config["models"]["tpcdi"] |= {layer: {"+materialized": "view"} for layer in _VIEWED}
    write_yaml(folder / "models" / "sources.yml", sources)
    place = (folder / EVENTS).as_uri()
    settings = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false", "spark.eventLog.dir": place}
    if way == "incremental":
        config["models"]["tpcdi"]["+file_format"] = "delta"
        # By default a small log is read in 50 tasks.
        settings |= {**DELTA_SETTINGS, "spark.databricks.delta.snapshotPartitions": "2"}
    profiles = yaml.safe_load((folder / "profiles.yml").read_text())
    profiles["tpcdi"]["outputs"]["dev"]["server_side_parameters"] = settings
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
