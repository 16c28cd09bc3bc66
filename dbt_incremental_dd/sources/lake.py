"""What connectors of lake tables have in common."""

from __future__ import annotations

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.sources.visit import Visit

_WIDENED = ("snapshot", "append")
"""Envelopes whose state has no other columns than the collection's."""


def refuse_other_columns(visit: Visit, schema: Schema) -> None:
    """Raises SourceError where the table's columns are not those stored; new ones may come, and are NULL in old rows."""
    stored, spec = visit.stored, visit.spec
    if stored is None or stored == schema:
        return
    missing = [c.name for c in stored if schema.find(c.name) is None]
    changed = [c.name for c in stored if (own := schema.find(c.name)) and own != c]
    if missing or changed or spec.envelope not in _WIDENED:
        added = [c.name for c in schema if stored.find(c.name) is None]
        shown = f"new: {added or 'none'}, gone: {missing or 'none'}, other type or name: {changed or 'none'}"
        raise SourceError(
            f"source {spec.name}: its columns changed ({shown})",
            "Take it in anew: remove its folder under state_root, then run the models on it with --full-refresh.",
        )


def whole_or_error(spec: SourceSpec, reason: str) -> str:
    """A note that the table is read whole. Raises SourceError where its envelope cannot make changes of that."""
    if spec.envelope != "snapshot":
        raise SourceError(
            f"source {spec.name}: what changed in the table cannot be told: {reason}",
            f"With envelope {spec.envelope} take it in anew: remove its folder under state_root, then run the models "
            "on it with --full-refresh; or use envelope snapshot, which compares.",
        )
    return f"read whole and compared, because {reason}"
