"""The collections' location and Spark's settings, from the profile of a dbt project.

Plain profiles are read without dbt, whose import takes longer than most verbs; templates are rendered by dbt.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.keep_session import kept_seconds
from dbt_incremental_dd.core.method import require_method
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.trace.layout import DEFAULT_ROOT, state_root_of


def project_of(options: argparse.Namespace) -> tuple[str, str]:
    """The folders of the project and its profiles. Raises ConfigError if there is no project, or its target is
    invalid."""
    folder = _project_folder(options.project_dir)
    if not (folder / "dbt_project.yml").exists():
        raise _no_project(folder)
    locate(options)
    return str(folder), str(_profiles_file(folder, options.profiles_dir).parent)


def project_folder(options: argparse.Namespace) -> str | None:
    """The project's folder; None if the call concerns a state root only."""
    given = (options.project_dir, options.profiles_dir, options.target)
    folder = _project_folder(options.project_dir)
    if (options.state_root is not None and given == (None, None, None)) or not (folder / "dbt_project.yml").exists():
        return None
    return str(folder)


@dataclass(frozen=True)
class Location:
    """A state root, its storage options, Spark's ``settings``, limits of what the driver computes, and the seconds for
    which a session stays without users."""

    state_root: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    thresholds: Thresholds = field(default_factory=Thresholds)
    keep: float = 0.0


def locate(options: argparse.Namespace) -> Location:
    """The location that the arguments name. ``--state-root`` needs no project if it stands alone.

    Looked up once for each call. Raises ConfigError, naming the file, if the project, its profile or the target is
    missing or invalid.
    """
    if not hasattr(options, "location"):
        options.location = _locate(options)
    found: Location = options.location
    return found


def _locate(options: argparse.Namespace) -> Location:
    root, given = options.state_root, (options.project_dir, options.profiles_dir, options.target)
    if root is not None and given == (None, None, None):
        return Location(state_root_of(root, os.getcwd()))
    found = _of_project(*given)
    if root is None:
        return found
    return replace(found, state_root=state_root_of(root, os.getcwd()))


def _of_project(project_dir: str | None, profiles_dir: str | None, target: str | None) -> Location:
    folder = _project_folder(project_dir)
    written = folder / "dbt_project.yml"
    if not written.exists():
        if profiles_dir is not None or target is not None or not (folder / DEFAULT_ROOT).is_dir():
            raise _no_project(folder)
        return Location(str(folder / DEFAULT_ROOT))
    name = os.environ.get("DBT_PROFILE") or _rendered(_read(written).get("profile"), written)
    if name is None:
        raise ConfigError(f"{written} names no profile", "Add one that is in profiles.yml: profile: NAME.")
    file = _profiles_file(folder, profiles_dir)
    profile = _entry(_read(file), name, "profile", file)
    target_name = target or os.environ.get("DBT_TARGET") or _rendered(profile.get("target"), file) or "default"
    output = _rendered(_entry(profile.get("outputs"), target_name, f"target of {name}", file), file)
    if output.get("type") != "differential":
        raise ConfigError(
            f"target {target_name} of profile {name} in {file} is of type {output.get('type')}",
            "Give one of type differential: --target.",
        )
    require_method(output.get("method"))
    root = state_root_of(str(output.get("state_root") or DEFAULT_ROOT), str(folder))
    options, settings, thresholds = (
        _mapping(output, key, file) for key in ("storage_options", "server_side_parameters", "thresholds")
    )
    most = Thresholds.of(thresholds, output.get("engine") or "auto")
    return Location(root, _texts(options), _texts(settings), most, kept_seconds(output.get("keep_session")))


def _no_project(folder: Path) -> ConfigError:
    return ConfigError(
        f"there is no dbt project in {folder}: no dbt_project.yml",
        "Go to the project's folder, or name it: --project-dir. `dbt-dd init my_project` makes a first project.",
    )


def _project_folder(given: str | None) -> Path:
    """As dbt finds it: the current folder, or the nearest parent that is a project."""
    given = given or os.environ.get("DBT_PROJECT_DIR")
    if given is not None:
        return Path(given).absolute()
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / "dbt_project.yml").exists()), here)


def _profiles_file(project: Path, given: str | None) -> Path:
    """As dbt finds it, and also in the project's own folder if that is not the current one."""
    given = given or os.environ.get("DBT_PROFILES_DIR")
    folders = [Path(given).absolute()] if given else [Path.cwd(), project, Path.home() / ".dbt"]
    for folder in folders:
        if (folder / "profiles.yml").exists():
            return folder / "profiles.yml"
    looked = ", ".join(dict.fromkeys(map(str, folders)))
    raise ConfigError(
        f"there is no profiles.yml for the project in {project}; looked in {looked}",
        "Say where it is: --profiles-dir. Or say where the collections are: --state-root.",
    )


def _read(file: Path) -> dict[str, Any]:
    try:
        found = yaml.safe_load(file.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{file} is not a mapping of names")
    return found


def _entry(found: Any, name: Any, what: str, file: Path) -> dict[str, Any]:
    entry = found.get(name) if isinstance(found, dict) else None
    if not isinstance(entry, dict):
        known = ", ".join(map(str, found)) if isinstance(found, dict) else "none"
        raise ConfigError(f"there is no {what} called {name} in {file}", f"There are: {known}.")
    return entry


def _mapping(output: Mapping[str, Any], key: str, file: Path) -> Mapping[str, Any]:
    found = output.get(key) or {}
    if not isinstance(found, dict):
        raise ConfigError(f"{key} in {file} is {found!r}", "Give a mapping of names to values.")
    return found


def _rendered(value: Any, file: Path) -> Any:
    """A value with its templates rendered: by dbt, unless they only name environment variables."""
    value = _with_variables(value)
    if not any(mark in str(value) for mark in ("{{", "{%", "{#")):
        return value
    from dbt.config.renderer import ProfileRenderer
    from dbt_common.context import set_invocation_context
    from dbt_common.exceptions import DbtBaseException

    set_invocation_context(os.environ)
    renderer = ProfileRenderer({})
    try:
        return renderer.render_data(value) if isinstance(value, dict) else renderer.render_value(value)
    except DbtBaseException as error:
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"{file} cannot be read: {reason}", "Set what it asks for, or give another --target."
        ) from error


def _with_variables(value: Any) -> Any:
    """The value, with texts that consist of one ``env_var`` call replaced by the variable."""
    if isinstance(value, dict):
        return {key: _with_variables(entry) for key, entry in value.items()}
    found = _ENV_VAR.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return value
    return os.environ.get(found["name"], value if found["default"] is None else found["default"])


_ENV_VAR = re.compile(
    r"\s*\{\{\s*env_var\(\s*(?P<q>['\"])(?P<name>\w+)(?P=q)\s*"
    r"(?:,\s*(?P<r>['\"])(?P<default>[^'\"\\{}]*)(?P=r)\s*)?\)\s*\}\}\s*"
)


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): _text(entry) for name, entry in values.items()}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
