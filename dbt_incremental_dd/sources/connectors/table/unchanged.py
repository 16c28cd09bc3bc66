"""Whether a table is as it was when it was last read, told without a session."""

from __future__ import annotations

from dbt_incremental_dd.sources.catalog_table import files_in
from dbt_incremental_dd.sources.connectors.catalog_spec import CatalogSpec
from dbt_incremental_dd.sources.poll import PollRequest


def is_unchanged(request: PollRequest[CatalogSpec]) -> bool:
    """True where nobody has opened the catalog since, and the table's folder has just the files that were read."""
    session, progress = request.workspace.session, request.progress
    folder, seen = progress.get("folder"), progress.get("files")
    is_known = not session.is_open and session.memory.has_table(request.spec.relation)
    if not is_known or request.stored is None or not isinstance(folder, str) or not seen:
        return False
    return bool(files_in(request.storage, folder) == seen)
