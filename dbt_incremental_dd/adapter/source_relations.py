"""The project's sources that are in no catalog, found in dbt's manifest by what a statement says it misses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from dbt.adapters.differential.requests import source_spec

from dbt_incremental_dd.runtime.source_relation import needs_relation
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.trace.layout import Storage

_NO_FILES = "PATH_NOT_FOUND"
_MISSES = ("TABLE_OR_VIEW_NOT_FOUND", _NO_FILES)
_NAMES = re.compile(r"`[^`]+`(?:\.`[^`]+`)*")


def declared(manifest: Any, schema: str, folder: str, identifier: str | None = None) -> Iterator[SourceSpec]:
    """The sources of a schema, or the one of that identifier, that are in no catalog by themselves.

    Raises ConfigError for what is wrong with their settings.
    """
    for node in list(getattr(manifest, "sources", {}).values()):
        if node.schema.lower() != schema.lower() or identifier not in (None, node.identifier):
            continue
        _, spec = source_spec(node.to_dict(omit_none=False), folder)
        if needs_relation(spec):
            yield spec


def missed(manifest: Any, storage: Storage, folder: str, message: str) -> SourceSpec | None:
    """The source that a statement has failed for the lack of: its relation, or the files that this shows."""
    if not any(kind in message for kind in _MISSES):
        return None
    named = [found.replace("`", "").lower() for found in _NAMES.findall(message)]
    for node in list(getattr(manifest, "sources", {}).values()):
        name = f"{node.schema}.{node.identifier}".lower()
        is_named = any(one == name or one.endswith(f".{name}") for one in named)
        if is_named or f"{storage.collection(name).uri}/" in message:
            return next(declared(manifest, node.schema, folder, node.identifier), None)
    return None


def shows_no_files(message: str) -> bool:
    """Whether a statement has failed because the files are gone that a relation shows."""
    return _NO_FILES in message
