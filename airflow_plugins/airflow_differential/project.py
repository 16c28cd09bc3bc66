"""The parts of a dbt project's manifest that a DAG needs: its models, and the sources that they read."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_RUNNABLE = ("seed", "snapshot", "model")


@dataclass(frozen=True)
class Node:
    """A model, seed, snapshot or source. ``collection``: ``schema.identifier``. ``reads``: unique ids of nodes."""

    unique_id: str
    name: str
    collection: str
    kind: str
    is_managed: bool = False
    reads: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    has_tests: bool = False


class Project:
    """The nodes of a project's manifest."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = dict(nodes)

    @staticmethod
    def load(project_dir: str, manifest: str | None = None) -> Project:
        """Reads ``target/manifest.json``. Raises FileNotFoundError, stating how to create it, if it is missing."""
        path = Path(manifest or os.path.join(project_dir, "target", "manifest.json"))
        if not path.exists():
            raise FileNotFoundError(
                f"There is no dbt manifest at {path}. Make it with `dbt parse --project-dir {project_dir}`, when "
                "your image is built for example; it is read when the DAG's file is parsed."
            )
        return Project.of(json.loads(path.read_text()))

    @staticmethod
    def of(manifest: Mapping[str, Any]) -> Project:
        """The nodes of a parsed manifest."""
        tested = {
            unique_id
            for node in manifest["nodes"].values()
            if node["resource_type"] == "test"
            for unique_id in node["depends_on"]["nodes"]
        }
        found = {
            unique_id: _node(node, has_tests=unique_id in tested)
            for unique_id, node in manifest["nodes"].items()
            if node["resource_type"] in _RUNNABLE and node["config"].get("enabled", True)
        }
        found |= {unique_id: _source(source) for unique_id, source in manifest["sources"].items()}
        return Project(found)

    def select(self, names: Collection[str]) -> dict[str, Node]:
        """The models with these names or tags (``tag:...``), or all of them. Raises ValueError for an unknown name."""
        runnable = {unique_id: node for unique_id, node in self.nodes.items() if node.kind in _RUNNABLE}
        if not names:
            return runnable
        for name in names:
            if not any(_matches(node, name) for node in runnable.values()):
                known = ", ".join(sorted(node.name for node in runnable.values()))
                raise ValueError(f"There is no model {name!r} in the project. There are: {known}.")
        return {i: node for i, node in runnable.items() if any(_matches(node, name) for name in names)}


def _matches(node: Node, name: str) -> bool:
    return name == node.name or (name.removeprefix("tag:") in node.tags and name.startswith("tag:"))


def _node(node: Mapping[str, Any], *, has_tests: bool) -> Node:
    return Node(
        unique_id=node["unique_id"],
        name=node["name"],
        collection=f"{node['schema']}.{node.get('alias') or node['name']}".lower(),
        kind=node["resource_type"] if node["config"].get("materialized") != "ephemeral" else "ephemeral",
        reads=tuple((node.get("depends_on") or {}).get("nodes", ())),
        tags=tuple(node.get("tags") or ()),
        has_tests=has_tests,
    )


def _source(source: Mapping[str, Any]) -> Node:
    meta = (source.get("meta") or {}).get("differential") or {}
    own = ((source.get("config") or {}).get("meta") or {}).get("differential") or {}
    wide = (source.get("source_meta") or {}).get("differential") or {}
    return Node(
        unique_id=source["unique_id"],
        name=f"{source['source_name']}.{source['name']}",
        collection=f"{source['schema']}.{source.get('identifier') or source['name']}".lower(),
        kind="source",
        is_managed={**wide, **meta, **own}.get("frontier") == "managed",
    )
