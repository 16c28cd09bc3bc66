"""The differential models and the exposures of a project, from ``target/manifest.json`` of dbt's last parse."""

from __future__ import annotations

import json
import os
from pathlib import Path

import yaml

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.runtime.orphans import Owners
from dbt_incremental_dd.sinks.exposures import Publication, publications
from dbt_incremental_dd.sources.graph import is_differential


def owners(folder: str) -> Owners | None:
    """The project's packages and models; None if the project has not been parsed yet. Raises ConfigError, naming the
    file, if it cannot be read."""
    file = _target(Path(folder)) / "manifest.json"
    if not file.exists():
        return None
    try:
        graph = json.loads(file.read_text())
        models = {
            str(id): f"{node['schema']}.{node['alias']}".lower()
            for id, node in graph["nodes"].items()
            if is_differential(node)
        }
        packages = {str(node["package_name"]) for node in graph["nodes"].values()}
        return Owners(packages | {str(graph["metadata"]["project_name"])}, models)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{file} cannot be read: {error!r}", "Create it again: dbt parse.") from error


def published(folder: str) -> list[Publication]:
    """What the project's exposures publish. Raises ConfigError where it has not been parsed, naming the file where it
    cannot be read, or naming an exposure."""
    file = _target(Path(folder)) / "manifest.json"
    try:
        graph = json.loads(file.read_text())
        exposures, nodes = list(graph["exposures"].values()), graph["nodes"]
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise ConfigError(f"{file} cannot be read: {error!r}", "Create it: dbt parse.") from error
    return publications(exposures, nodes, folder)


def _target(folder: Path) -> Path:
    given = os.environ.get("DBT_TARGET_PATH")
    if given is None:
        settings = yaml.safe_load((folder / "dbt_project.yml").read_text())
        given = str(settings.get("target-path") or "target")
    return folder / given
