"""The rows that a relation shows, where these are certain without a session: those of a model's view, of a source, of a
seed, or of a table that a source was last read from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dbt_incremental_dd.core.manifest import ModelManifest, SourceManifest
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.frontend.relations import RelationName
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.shown import was_published
from dbt_incremental_dd.runtime.source_relation import source_columns
from dbt_incremental_dd.sources.catalog_table import is_as_read
from dbt_incremental_dd.sources.spec import SourceSpec
from dbt_incremental_dd.sources.staged_table import LoadedTable, staged_table
from dbt_incremental_dd.trace.columns import visible_schema
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import Log, total_rows

SourceOf = Callable[[str, str], SourceSpec | None]
"""The source of that schema and identifier which is in no catalog by itself, if one is declared."""


@dataclass(frozen=True)
class ShownRows:
    """``name``: the collection; ``log``: None where the rows are a seed's ``table``, or there are none yet."""

    name: str
    schema: Schema
    log: Log | None = None
    table: LoadedTable | None = None

    @property
    def count(self) -> int:
        """The number of updates that have to be read."""
        of_table = 0 if self.table is None else self.table.rows
        return of_table if self.log is None else total_rows(self.log.files)


def shown_rows(session: LazySession, storage: Storage, relation: RelationName, source_of: SourceOf) -> ShownRows | None:
    """None for another relation, or if it is not certain what it shows. Raises ConfigError for a source with wrong
    settings."""
    if len(relation.parts) != 2:
        return None
    staged = staged_table(session, storage, relation.key)
    if staged is not None:
        return ShownRows(relation.key, staged.columns, table=staged)
    place = storage.collection(relation.key)
    log = place.log()
    manifest = None if log is None else place.read_manifest(log.manifest)
    kind = session.memory.relation_type(*relation.key.split(".", 1))
    match manifest:
        case ModelManifest() if kind == "view" and _is_plain(manifest, relation):
            pass
        case SourceManifest() if _is_table(session, storage, relation, manifest):
            pass
        case SourceManifest() | None if kind == "" or (kind == "view" and was_published(place)):
            spec = source_of(*relation.parts)
            schema = None if spec is None else source_columns(session, storage, spec)
            return None if schema is None else ShownRows(relation.key, schema, log if manifest is not None else None)
        case _:
            return None
    assert log is not None
    return ShownRows(relation.key, visible_schema(manifest, log), log)


def _is_plain(manifest: ModelManifest, relation: RelationName) -> bool:
    """Whether the model's view, of that name, has just the rows of its collection."""
    is_its = manifest.relation.replace("`", "").lower() == relation.key
    return bool(manifest.fingerprint) and not manifest.history and not manifest.output and is_its


def _is_table(session: LazySession, storage: Storage, relation: RelationName, manifest: SourceManifest) -> bool:
    """Whether the relation is a table whose rows, as they are now, are the source's."""
    names = (relation.key, relation.sql.lower())
    return manifest.envelope == "snapshot" and any(
        is_as_read(session, storage, name, manifest.progress) for name in names
    )
