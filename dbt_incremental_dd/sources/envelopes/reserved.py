"""Names that a source's columns cannot have: what is stored beside them, and computed from them, is called so."""

from __future__ import annotations

from collections.abc import Iterable

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import is_reserved
from dbt_incremental_dd.sources.envelopes.settings import EnvelopeSettings


def refuse_reserved(source: str, settings: EnvelopeSettings, names: Iterable[str]) -> None:
    """Raises SourceError for a column whose name is reserved, unless it says what a changelog's records do."""
    for name in names:
        if is_reserved(name) and name not in (settings.diff_column, settings.op_column):
            raise SourceError(
                f"source {source}: column {name} has a reserved name: those that begin with dd_ are",
                "Rename the column, or read a view in which it has another name.",
            )
