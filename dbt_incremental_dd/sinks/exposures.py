"""What the exposures of a project publish: ``config: meta: differential`` of an exposure names a sink.

exposures:
  - name: crm
    type: application
    owner: {name: sales}
    depends_on: [ref('spend')]
    config:
      meta:
        differential: {table: public.spend, key: customer, options: {url: {env_var: CRM_URL}}}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.sinks.registry import SINKS
from dbt_incremental_dd.sinks.wanted import Wanted
from dbt_incremental_dd.sources.graph import is_differential, settings_of
from dbt_incremental_dd.sources.secrets import resolved

_SETTINGS = ("key", "options", "form", "rejected", "format")


@dataclass(frozen=True)
class Publication:
    """What an exposure publishes: the collection's full name, and where to."""

    exposure: str
    collection: str
    kind: str
    wanted: Wanted


def publications(
    exposures: Iterable[Mapping[str, Any]], nodes: Mapping[str, Mapping[str, Any]], folder: str
) -> list[Publication]:
    """Those of dbt's exposures that name a sink. ``folder``: the project's, for relative paths. Raises ConfigError,
    naming the exposure."""
    found = [(str(one["name"]), one, settings_of(one)) for one in exposures]
    return [_publication(name, one, given, nodes, folder) for name, one, given in found if given]


def rejecting_publications(
    exposures: Iterable[Mapping[str, Any]], nodes: Mapping[str, Mapping[str, Any]], folder: str
) -> list[Publication]:
    """Those that set rejected changes aside, without their options, which may need the publisher's environment. One
    that is wrong is left out: its publisher says so."""
    found = []
    for one in exposures:
        given = {name: value for name, value in settings_of(one).items() if name != "options"}
        if "rejected" in given:
            with suppress(ConfigError):
                found.append(_publication(str(one["name"]), one, given, nodes, folder))
    return found


def _publication(
    name: str,
    exposure: Mapping[str, Any],
    given: Mapping[str, Any],
    nodes: Mapping[str, Mapping[str, Any]],
    folder: str,
) -> Publication:
    kinds = [kind for kind in SINKS if kind in given]
    if len(kinds) != 1:
        raise ConfigError(
            f"exposure {name}: it names {len(kinds)} sinks", f"Name one of {', '.join(SINKS)} under meta.differential."
        )
    (kind,) = kinds
    for key in given:
        if key not in (kind, *_SETTINGS):
            raise ConfigError(f"exposure {name}: unknown setting {key}", f"It takes {', '.join((kind, *_SETTINGS))}.")
    target = given[kind]
    if not isinstance(target, str) or not target:
        raise ConfigError(f"exposure {name}: {kind} is {target!r}", "It is a text.")
    wanted = Wanted(
        _absolute(target, folder) if kind == "files" else target,
        key=_key(name, given.get("key", ())),
        options=_options(name, given.get("options") or {}),
        form=_text(name, given, "form"),
        rejected=None if "rejected" not in given else Path(_absolute(str(given["rejected"]), folder)),
        format=_text(name, given, "format"),
    )
    return Publication(name, _collection(name, exposure, nodes), kind, wanted)


def _collection(name: str, exposure: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]]) -> str:
    """The only differential model, or snapshot, that the exposure depends on."""
    read = [nodes[id] for id in exposure["depends_on"]["nodes"] if id in nodes]
    found = sorted(f"{node['schema']}.{node['alias']}".lower() for node in read if is_differential(node))
    if len(found) != 1:
        raise ConfigError(
            f"exposure {name}: it depends on {len(found)} differential models{': ' if found else ''}{', '.join(found)}",
            "What is published is one: write an exposure for each.",
        )
    return found[0]


def _absolute(target: str, folder: str) -> str:
    return target if "://" in target else str(Path(folder, target))


def _key(name: str, given: Any) -> tuple[str, ...]:
    columns: Sequence[Any] = [given] if isinstance(given, str) else given
    if not isinstance(columns, list | tuple) or not all(isinstance(column, str) for column in columns):
        raise ConfigError(f"exposure {name}: key is {given!r}", "It is a column, or a list of columns.")
    return tuple(columns)


def _options(name: str, given: Any) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise ConfigError(f"exposure {name}: options is {given!r}", "It is a mapping of names to values.")
    return resolved(f"exposure {name}", given)[0]


def _text(name: str, given: Mapping[str, Any], key: str) -> str | None:
    value = given.get(key)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"exposure {name}: {key} is {value!r}", "It is a text.")
    return value
