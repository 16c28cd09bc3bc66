"""The differential models and the exposures of a project, from ``target/manifest.json`` of dbt's last parse."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.runtime.orphans import Owners
from dbt_incremental_dd.sinks.exposures import Publication, publications, rejecting_publications
from dbt_incremental_dd.sources.graph import is_differential


def owners(folder: str) -> Owners | None:
    """The project's packages and models; None if the project has not been parsed yet. Raises ConfigError, naming the
    file, if it cannot be read."""
    if not _manifest(folder).exists():
        return None
    with _reading(folder) as graph:
        models = {
            str(id): f"{node['schema']}.{node['alias']}".lower()
            for id, node in graph["nodes"].items()
            if is_differential(node)
        }
        packages = {str(node["package_name"]) for node in graph["nodes"].values()}
        return Owners(packages | {str(graph["metadata"]["project_name"])}, models)


def published(folder: str) -> list[Publication]:
    """What the project's exposures publish. Raises ConfigError, naming the file, if the project has not been parsed or
    it cannot be read, and naming the exposure, if one is wrong."""
    return publications(*_exposures(folder), folder)


def rejecting(folder: str) -> list[Publication]:
    """Those of the project's exposures that set rejected changes aside, without their options; none if the project has
    not been parsed, or cannot be read."""
    try:
        exposures, nodes = _exposures(folder)
    except ConfigError:
        return []
    return rejecting_publications(exposures, nodes, folder)


def _exposures(folder: str) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """The project's exposures, and its nodes by id. Raises what ``_reading`` does."""
    with _reading(folder) as graph:
        return list(graph["exposures"].values()), graph["nodes"]


@contextmanager
def _reading(folder: str) -> Iterator[dict[str, Any]]:
    """The manifest. Raises ConfigError for what is not there, or not as dbt writes it."""
    file = _manifest(folder)
    try:
        yield json.loads(file.read_text())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{file} cannot be read: {error!r}", "Create it again: dbt parse.") from error


def _manifest(folder: str) -> Path:
    return _target(Path(folder)) / "manifest.json"


def _target(folder: Path) -> Path:
    given = os.environ.get("DBT_TARGET_PATH")
    if given is None:
        settings = yaml.safe_load((folder / "dbt_project.yml").read_text())
        given = str(settings.get("target-path") or "target")
    return folder / given
