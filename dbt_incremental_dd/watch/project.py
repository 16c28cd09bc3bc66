"""A dbt project that is parsed once and run many times, in this process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.core.errors import ConfigError, DifferentialError
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.sources.graph import is_differential, source_of
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.watch.graph import WatchedModel, watched_models

if TYPE_CHECKING:
    from dbt_incremental_dd.relation.lazy_session import LazySession


_KINDS = ("--resource-type", "model", "--resource-type", "snapshot")


class RunFailed(DifferentialError):
    """A run in which a model failed, with dbt's message for each. ``failed``: unique ids of these models and of those
    that were skipped for them; empty if the run failed as a whole."""

    failed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ModelResult:
    """One model's result in a run. ``id``: dbt's unique id. ``seconds``: wall time."""

    name: str
    rows_added: int
    rows_removed: int
    id: str = ""
    seconds: float = 0.0


@dataclass
class Project:
    """``arguments``: added to every command, such as a target. ``select`` and ``exclude``: selectors of models, in
    dbt's syntax."""

    folder: str
    profiles: str | None = None
    arguments: Sequence[str] = ()
    select: Sequence[str] = ()
    exclude: Sequence[str] = ()
    _manifest: Any = field(default=None, init=False)
    _selected: frozenset[str] | None = field(default=None, init=False)

    def parse(self) -> None:
        """Parses the project. Raises ConfigError with dbt's message if it is invalid."""
        result = self._invoke(["parse"], None)
        if not result.success:
            raise ConfigError(f"the project in {self.folder} cannot be parsed: {result.exception}")
        self._manifest = result.result
        self._selected = frozenset(self._selected_ids()) if self.select or self.exclude else None

    def _selected_ids(self) -> list[str]:
        """Unique ids of the selected models. Raises ConfigError if there are none."""
        selection = [word for name in ("select", "exclude") for word in _option(name, getattr(self, name))]
        how = [*_KINDS, "--output", "json", "--output-keys", "unique_id"]
        found = self._invoke(["list", *how, *selection], self._manifest)
        if not found.success or not found.result:
            raise ConfigError(
                f"nothing of the project in {self.folder} is selected: {found.exception or 'no model matches'}",
                "Give --select and --exclude as for `dbt run`.",
            )
        return [str(json.loads(line)["unique_id"]) for line in found.result]

    def sources(self) -> dict[str, SourceSpec]:
        """The sources that models read, by unique id. Raises ConfigError for invalid settings."""
        read = {parent for node in self._models() for parent in node.depends_on.nodes}
        nodes = {name: node for name, node in self._manifest.sources.items() if name in read}
        return {name: source_of(node.to_dict(), self.folder)[1] for name, node in nodes.items()}

    def graph(self) -> dict[str, WatchedModel]:
        """The selected models, by unique id. Raises ConfigError, naming the model, for an invalid ``target_lag``."""
        return watched_models(self._models(), self._manifest.nodes, self._manifest.sources)

    def exposures(self) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
        """The project's exposures, and by unique id the nodes that they depend on, as dbt's manifest has them."""
        exposures = [node.to_dict() for node in self._manifest.exposures.values()]
        read = {id for one in exposures for id in one["depends_on"]["nodes"]}
        return exposures, {id: node.to_dict() for id, node in self._manifest.nodes.items() if id in read}

    def affected(self, sources: Iterable[str]) -> list[str]:
        """Selectors of all models downstream of these sources, and of all that those read, so that no model waits for
        one that was not run."""
        manifest = self._manifest
        below = _closure(sources, manifest.child_map)
        whole = _closure(below, manifest.parent_map)
        return sorted(".".join(node.fqn) for node in self._models() if node.unique_id in whole)

    def files(self) -> list[str]:
        """The project's files and folders: a change of one of them is a change of the project."""
        known = self._manifest
        nodes = [*known.nodes.values(), *known.sources.values(), *known.macros.values(), *known.exposures.values()]
        own = {node.original_file_path for node in nodes if node.package_name == self._manifest.metadata.project_name}
        folders = {os.path.dirname(path) for path in own}
        names = sorted(own | folders | {"dbt_project.yml", "profiles.yml", "packages.yml"})
        return [os.path.join(self.folder, name) for name in names if name]

    def run(self, select: Sequence[str] | None = None) -> list[ModelResult]:
        """One `dbt run` of these models, or of all selected ones, with their snapshots. Raises RunFailed, naming each
        model that failed and why."""
        if select is None and self._selected is not None:
            select = [".".join(node.fqn) for node in self._models()]
        selection = _option("select", select or ())
        # Relations are looked up when they are needed, and the artifacts of each run are not read.
        flags = ["--no-populate-cache", "--no-write-json"]
        forget_compiled(self._manifest)
        has_snapshots = any(node.resource_type == "snapshot" for node in self._models())
        command = ["build", *_KINDS] if has_snapshots else ["run"]
        result = self._invoke([*command, *flags, *selection], self._manifest)
        if isinstance(result.exception, KeyboardInterrupt):
            raise result.exception
        results = list(getattr(result.result, "results", ()) or ())
        failed = [one for one in results if one.status in ("error", "fail", "skipped")]
        if result.exception or failed or not result.success:
            reasons = [f"{one.node.name}: {one.message}" for one in failed if one.status != "skipped"]
            error = RunFailed("; ".join(reasons) or str(result.exception or "dbt run failed"))
            error.failed = frozenset(one.node.unique_id for one in failed)
            raise error
        return [_result_of(one) for one in results]

    def storage(self) -> Storage:
        """The collections' storage as configured in the profile; available after the first run."""
        from dbt.adapters.factory import get_adapter_by_type

        credentials = get_adapter_by_type("differential").config.credentials
        storage: Storage = credentials.storage(self.folder)
        return storage

    def session(self) -> Callable[[], LazySession]:
        """Gives the session as configured in the profile; available after the first run."""
        from dbt.adapters.factory import get_adapter_by_type

        return partial(get_adapter_by_type("differential").config.credentials.session, self.folder)

    def _models(self) -> list[Any]:
        """Models, and the snapshots that are kept up to date as they are."""
        nodes = self._manifest.nodes.values()
        models = [node for node in nodes if _is_model(node) and node.config.enabled]
        return [node for node in models if self._selected is None or node.unique_id in self._selected]

    def _invoke(self, command: list[str], manifest: Any) -> Any:
        from dbt.cli.main import dbtRunner

        given = ["--project-dir", self.folder, "--log-level", "none", "--no-send-anonymous-usage-stats"]
        given += ["--profiles-dir", self.profiles] if self.profiles else []
        return dbtRunner(manifest=manifest).invoke([*command, *given, *self.arguments])


def _is_model(node: Any) -> bool:
    is_snapshot = node.resource_type == "snapshot" and is_differential({"config": node.config})
    return is_snapshot or bool(node.resource_type == "model")


def forget_compiled(manifest: Any) -> None:
    """Makes dbt compile everything again. Otherwise it would not insert the text of ephemeral models into models a
    second time."""
    for node in manifest.nodes.values():
        if getattr(node, "compiled", False):
            node.compiled, node.compiled_code = False, None
            node.extra_ctes, node.extra_ctes_injected = [], False


def _option(name: str, values: Sequence[str]) -> list[str]:
    return [f"--{name}", *values] if values else []


def _closure(names: Iterable[str], steps: dict[str, list[str]]) -> set[str]:
    """All nodes that are reachable, including the given ones."""
    found: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += steps.get(name, ())
    return found


def _result_of(one: Any) -> ModelResult:
    response = one.adapter_response or {}
    added, removed = (int(response.get(key) or 0) for key in ("rows_added", "rows_removed"))
    return ModelResult(one.node.name, added, removed, one.node.unique_id, float(one.execution_time or 0))
