"""A model's open table: brought up to the collection after each commit.

The collection's commit counts. A table that a killed run has left behind is made up for by the next run.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.manifest import Manifest
from dbt_incremental_dd.core.profile import phase
from dbt_incremental_dd.open_table.keep import bring_up
from dbt_incremental_dd.open_table.registry import FORMATS
from dbt_incremental_dd.open_table.table import Table
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.runtime.request import ModelRequest
from dbt_incremental_dd.runtime.strategy import StoredModel
from dbt_incremental_dd.runtime.table_note import TableNote, note_table, noted_table
from dbt_incremental_dd.trace.columns import visible_schema

if TYPE_CHECKING:
    from dbt_incremental_dd.runtime.run_context import RunContext


def keep_table(run: RunContext, request: ModelRequest, before: StoredModel) -> None:
    """Makes the table that the model's config asks for what its log has; ``before``: the model as the run found it. A
    table of another format, or that is not asked for any more, goes.

    Raises DifferentialError; the collection's own commit stands. Call it as the model's writer.
    """
    output, had, place = request.config.output, before.manifest.output, before.place
    if had and had != output:
        run.report(f"{place.name}: its config has no `output: {had}` any more; the table at {place.table_uri} goes")
        place.storage.remove(place.table_uri)
        note_table(place, None)
    log = place.log() if output else None
    if log is None:
        return
    note = noted_table(place)
    if note is not None and (note.format, had) == (output, output) and note.has_all_of(log):
        return
    manifest = place.read_manifest(log.manifest) or Manifest()
    schema, retained = visible_schema(manifest, log), request.config.retain_history
    with phase("table"), closing(Workspace(run.session, run.storage, run.found)) as workspace:
        table = Table(place.name, place.table_uri, FORMATS[output], schema, manifest.sorted_by, retained)
        kept = bring_up(workspace, table, log, None if note is None else (note.version, note.upper))
        note_table(place, TableNote(output, kept.version.number, log.frontiers.upper))
    if kept.why:
        run.report(f"{place.name}: {kept.why}; its table is written anew")
