"""A model's open table: brought up to the collection after each commit.

The collection's commit counts. A table that a killed run has left behind is made up for by the next run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.open_table.keep import Table, bring_up
from dbt_incremental_dd.open_table.registry import FORMATS
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.runtime.request import ModelConfig
from dbt_incremental_dd.runtime.table_note import TableNote, note_table, noted_table
from dbt_incremental_dd.trace.layout import CollectionStore
from dbt_incremental_dd.trace.log import Log

if TYPE_CHECKING:
    from dbt_incremental_dd.runtime.run_context import RunContext


def keep_table(
    run: RunContext,
    place: CollectionStore,
    log: Log,
    schema: Schema,
    config: ModelConfig,
    *,
    before: str,
    sorted_by: tuple[str, ...],
) -> None:
    """Makes the table that the config asks for what the log has; ``before``: the format of the one that the model had,
    which goes where it is another. ``sorted_by``: the columns that the collection's files are sorted by.

    Raises DifferentialError; the collection's own commit stands.
    """
    output = config.output
    if before and before != output:
        run.report(f"{place.name}: its config has no `output: {before}` any more; the table at {place.table_uri} goes")
        place.storage.remove(place.table_uri)
        note_table(place, None)
    if not output:
        return
    note = noted_table(place)
    if note is not None and (note.format, before) == (output, output) and note.has_all_of(log):
        return
    workspace = Workspace(run.session, run.storage, run.found)
    try:
        table = Table(place.name, place.table_uri, FORMATS[output], schema, sorted_by, config.retain_history)
        kept = bring_up(workspace, table, log, None if note is None else (note.version, note.upper))
    finally:
        workspace.close()
    if kept.why:
        run.report(f"{place.name}: {kept.why}; its table is written anew")
    note_table(place, TableNote(output, kept.version.number, log.frontiers.upper))
