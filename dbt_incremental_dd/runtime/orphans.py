"""Collections that nothing keeps up to date any more: their model is gone, or is no longer differential.

A state root may serve several targets and projects, so a collection counts as an orphan only if its own manifest
names a model of a package of this project. A source is one if no model that is left reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.trace.layout import Place, Storage
from dbt_incremental_dd.trace.lock import writing

_MALFORMED = "__malformed"


@dataclass(frozen=True)
class Owners:
    """The differential models of a project and its packages.

    ``models``: the collection of each, by unique id.
    """

    packages: Collection[str]
    models: Mapping[str, str]

    def disowns(self, unique_id: str, name: str) -> bool:
        """Whether the collection ``name`` was made for a model of this project that is not there any more.

        A model of another schema belongs to another target.
        """
        if not any(unique_id.startswith(f"model.{package}.") for package in self.packages):
            return False
        own = self.models.get(unique_id)
        return own is None or (own != name and own.rpartition(".")[0] == name.rpartition(".")[0])


@dataclass(frozen=True)
class Orphan:
    """A collection and why nobody owns it."""

    place: Place
    why: str


def orphans(storage: Storage, owners: Owners) -> tuple[Orphan, ...]:
    """All orphans under the state root: models first, then the sources that only they read."""
    manifests = {place.name: (place, manifest) for place in storage.collections() if (manifest := _manifest(place))}
    gone = {
        name: Orphan(place, f"{manifest['unique_id']} is not a differential model of the project")
        for name, (place, manifest) in manifests.items()
        if manifest.get("kind") == "model" and owners.disowns(str(manifest.get("unique_id", "")), name)
    }
    left = [manifest for name, (_, manifest) in manifests.items() if name not in gone]
    read = {str(name) for manifest in left for name in dict(manifest.get("inputs", {})).values()}
    once = {str(name) for orphan in gone for name in dict(manifests[orphan][1].get("inputs", {})).values()}
    for name, (place, _) in manifests.items():
        source = name.removesuffix(_MALFORMED)
        if source in once - read and _kind(manifests, source) == "source":
            gone[name] = Orphan(place, "no model that is left reads it")
    return tuple(gone.values())


def remove_orphans(found: Collection[Orphan]) -> Iterator[str]:
    """Removes what is stored of them; yields a line about each."""
    for orphan in found:
        with writing(orphan.place):
            orphan.place.remove()
        yield f"{orphan.place.name}: removed, because {orphan.why}"


def _manifest(place: Place) -> Mapping[str, Any]:
    """Empty if there is none that can be read: what is damaged is reported by whoever needs it."""
    try:
        log = place.log()
        return place.read_manifest(log.manifest) if log is not None else {}
    except StateError:
        return {}


def _kind(manifests: Mapping[str, tuple[Place, Mapping[str, Any]]], name: str) -> str:
    return str(manifests[name][1].get("kind", "")) if name in manifests else ""
