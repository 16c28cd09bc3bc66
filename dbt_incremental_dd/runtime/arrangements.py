"""Who reads collections' arrangements."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.trace.layout import Storage


def readers(storage: Storage) -> Mapping[str, tuple[str, ...]]:
    """The models that use each arrangement, by its URI. Reads every model's manifest."""
    found: dict[str, tuple[str, ...]] = {}
    for place in storage.collections():
        log = place.log()
        manifest = place.read_manifest(log.manifest) if log is not None else None
        for used in manifest.arrangements if isinstance(manifest, ModelManifest) else ():
            uri = storage.collection(used.collection).arrangement(used.column).uri
            found[uri] = (*found.get(uri, ()), place.name)
    return found
