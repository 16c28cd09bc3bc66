"""A copy of a dbt project whose models are all built in two ways: differential, and as tables in schemas beside."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dbt_incremental_dd.trace.layout import DEFAULT_ROOT, Storage
from dbt_incremental_dd.watch.project import forget_compiled
from tests.projects.seeds import Seed

_BUILT = ("view", "table", "incremental", "materialized_view", "differential")
_WRITTEN = shutil.ignore_patterns("target", "logs", ".git", ".venv", ".dbt_incremental_dd", "spark-warehouse")
_NOT_OF_TABLES = ("file_format", "incremental_strategy", "location_root", "partition_by", "clustered_by", "buckets")
"""They ask for connectors that nobody has here, or move columns to the end, and change no row."""


@dataclass(frozen=True)
class Ran:
    """One node's part in a run."""

    unique_id: str
    status: str
    message: str
    strategy: str = ""
    fallbacks: tuple[str, ...] = ()


class Project:
    """The copy, parsed. dbt is run in this process, over manifests in which models' materializations are set: the text
    of the project stays as it is, whatever way it sets them."""

    def __init__(
        self, original: Path, folder: Path, variables: dict[str, Any], threads: int, schema: str, conf: dict[str, str]
    ) -> None:
        self.folder = folder
        self._variables = variables
        shutil.copytree(original, folder, ignore=_WRITTEN)
        config = yaml.safe_load((folder / "dbt_project.yml").read_text())
        self.name = str(config["name"])
        target = {"type": "differential", "schema": schema, "threads": threads, "server_side_parameters": conf}
        profile = {str(config.get("profile", self.name)): {"target": "dev", "outputs": {"dev": target}}}
        (folder / "profiles.yml").write_text(yaml.safe_dump(profile))
        macros = folder / (config.get("macro-paths") or ["macros"])[0]
        macros.mkdir(exist_ok=True)
        shutil.copy(Path(__file__).with_name("run_time.sql"), macros / "dd_projects_run_time.sql")
        self._install(original)
        self.written = self._parse()
        _place_seeds(self.written)
        self.removed: dict[str, tuple[str, ...]] = {}
        self._loaded: dict[str, bytes] = {}
        self.differential = self._differential()
        self.models = sorted(name for name, node in self.differential.nodes.items() if _is_differential(node))

    def _install(self, original: Path) -> None:
        """Packages in folders beside the project; others must lie under its ``dbt_packages``."""
        path = self.folder / "packages.yml"
        if not path.exists() or (self.folder / "dbt_packages").exists():
            return
        packages = yaml.safe_load(path.read_text())
        for package in packages["packages"]:
            if "local" in package:
                package["local"] = str((original / package["local"]).resolve())
        path.write_text(yaml.safe_dump(packages))
        self._dbt(["deps"], None, {})

    def _parse(self) -> Any:
        """The manifest, without what dbt cannot copy; no run needs it."""
        manifest = self._dbt(["parse", "--no-partial-parse"], None, {}).result
        manifest.saved_queries.clear()
        manifest.disabled.clear()
        return manifest

    def _differential(self) -> Any:
        """Everything that has a relation of its own is differential, without the configs that it refuses."""
        from dbt.adapters.differential.settings import refused

        manifest = self.written.deepcopy()
        for node in _models(manifest):
            if node.config.materialized in _BUILT and node.language == "sql":
                node.config.materialized = "differential"
                found = tuple(refused(node.config.to_dict()))
                for key in found:
                    _unset(node.config, key)
                if found and node.config.get("incremental_strategy"):
                    _unset(node.config, "incremental_strategy")
                self.removed |= {node.unique_id: found} if found else {}
        manifest.build_flat_graph()
        return manifest

    def tables(self, suffix: str) -> Any:
        """A manifest in which the differential models are tables, in schemas with that suffix."""
        manifest = self.written.deepcopy()
        for name in self.models:
            node = manifest.nodes[name]
            node.config.materialized = "table"
            for key in _NOT_OF_TABLES:
                _unset(node.config, key)
            _move(node, f"{node.schema}{suffix}")
        manifest.build_flat_graph()
        return manifest

    def keep_as_table(self, unique_id: str) -> None:
        """A model that is refused is a table in the differential project, too."""
        self.differential.nodes[unique_id].config.materialized = "table"
        self.differential.build_flat_graph()

    def seeds(self) -> list[Seed]:
        """Those that are enabled."""
        return [Seed.read(self._file(node)) for node in self.written.nodes.values() if _is_seed(node)]

    def load(self) -> None:
        """Loads the seeds as they are in their files. Raises RuntimeError where one is not."""
        files = {
            name: self._file(node).read_bytes() for name, node in self.differential.nodes.items() if _is_seed(node)
        }
        done = self._dbt(["seed"], self.differential, {})
        wrong = [ran for ran in _ran(done) if ran.status not in ("success", "pass")]
        if wrong or not done.success:
            raise RuntimeError(f"seeds: {'; '.join(ran.message for ran in wrong) or done.exception}")
        left = {ran.unique_id for ran in _ran(done) if ran.message.startswith("UNCHANGED")}
        changed = sorted(name for name in left if files[name] != self._loaded.get(name))
        if changed:
            raise RuntimeError(f"seeds have changed and were not loaded: {', '.join(changed)}")
        self._loaded = files

    def _file(self, seed: Any) -> Path:
        return Path(seed.root_path or self.folder) / seed.original_file_path

    def run(self, manifest: Any, now: str, select: Sequence[str] = ()) -> tuple[float, list[Ran]]:
        """``dbt run`` at that time: its seconds, and what became of each model."""
        chosen = ["--select", *(".".join(manifest.nodes[name].fqn) for name in select)] if select else []
        started = time.monotonic()
        forget_compiled(manifest)
        done = self._dbt(["run", *chosen], manifest, {"dd_time": now})
        seconds = time.monotonic() - started
        if done.result is None:
            raise RuntimeError(f"dbt run: {done.exception}")
        return seconds, [ran for ran in _ran(done) if ran.unique_id in manifest.nodes]

    def storage(self) -> Storage:
        """Where the collections are."""
        return Storage(str(self.folder / DEFAULT_ROOT))

    def _dbt(self, command: list[str], manifest: Any, variables: dict[str, Any]) -> Any:
        from dbt.cli.main import dbtRunner

        folder = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        quiet = ["--quiet", "--no-send-anonymous-usage-stats", "--log-level-file", "none"]
        given = ["--vars", json.dumps({**self._variables, **variables})]
        done = dbtRunner(manifest=manifest).invoke([*command, *folder, *quiet, *given])
        if done.exception and command[0] in ("parse", "deps"):
            raise RuntimeError(f"dbt {command[0]}: {done.exception}")
        return done


def _models(manifest: Any) -> list[Any]:
    return [node for node in manifest.nodes.values() if node.resource_type == "model"]


def _is_seed(node: Any) -> bool:
    return bool(node.resource_type == "seed")


def _is_differential(node: Any) -> bool:
    return node.resource_type == "model" and node.config.materialized == "differential"


def _unset(config: Any, key: str) -> None:
    if key in config._extra:
        del config._extra[key]
    elif getattr(config, key, None):
        setattr(config, key, None)


def _move(node: Any, schema: str) -> None:
    node.schema = schema
    node.relation_name = f"`{schema}`.`{getattr(node, 'alias', None) or node.identifier}`"


def _place_seeds(manifest: Any) -> None:
    """A seed that has a source's name goes where the source is read."""
    sources = {source.identifier.lower(): source for source in manifest.sources.values()}
    for node in manifest.nodes.values():
        source = sources.get(node.alias.lower()) if node.resource_type == "seed" else None
        if source is not None:
            _move(node, source.schema)


def _ran(done: Any) -> list[Ran]:
    results = getattr(done.result, "results", None) or []
    found = []
    for one in results:
        response = one.adapter_response or {}
        fallbacks = tuple(response.get("fallbacks") or ())
        told = str(response.get("strategy") or "")
        found.append(Ran(one.node.unique_id, str(one.status), str(one.message), told, fallbacks))
    return found
