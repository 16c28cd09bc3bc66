"""Collections that nothing keeps up to date any more: their model is gone, or is no longer differential.

A state root may serve several targets and projects, so a collection counts as an orphan only if its own manifest
names a model of a package of this project. A source is one if no model that is left reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.manifest import Manifest, ModelManifest, SourceManifest
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
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

    place: CollectionStore
    why: str


def orphans(storage: Storage, owners: Owners) -> tuple[Orphan, ...]:
    """All orphans under the state root: models first, then the sources that only they read."""
    places = {place.name: place for place in storage.collections()}
    manifests = {name: manifest for name, place in places.items() if (manifest := _manifest(place)) is not None}
    models = {name: manifest for name, manifest in manifests.items() if isinstance(manifest, ModelManifest)}
    gone = {
        name: Orphan(places[name], f"{model.unique_id} is not a differential model of the project")
        for name, model in models.items()
        if owners.disowns(model.unique_id, name)
    }
    read = {source for name, model in models.items() if name not in gone for source in model.inputs.values()}
    once = {source for name in gone for source in models[name].inputs.values()}
    for name in manifests:
        source = name.removesuffix(_MALFORMED)
        if source in once - read and isinstance(manifests.get(source), SourceManifest):
            gone[name] = Orphan(places[name], "no model that is left reads it")
    return tuple(gone.values())


def remove_orphans(found: Collection[Orphan]) -> Iterator[str]:
    """Removes what is stored of them; yields a line about each."""
    for orphan in found:
        with writing(orphan.place):
            orphan.place.remove()
        yield f"{orphan.place.name}: removed, because {orphan.why}"


def _manifest(place: CollectionStore) -> Manifest | None:
    """None if there is none that can be read: what is damaged is reported by whoever needs it."""
    try:
        log = place.log()
        return place.read_manifest(log.manifest) if log is not None else None
    except StateError:
        return None
