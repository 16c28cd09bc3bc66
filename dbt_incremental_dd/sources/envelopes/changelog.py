"""Envelope ``changelog``: each record says how a row's multiplicity changes, by a number or an operation's name."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import functions as F

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import DIFF, Schema
from dbt_incremental_dd.sources.envelopes.envelope import Change, Envelope, EnvelopeInput, Requirement
from dbt_incremental_dd.sources.envelopes.settings import EnvelopeSettings
from dbt_incremental_dd.trace.read import consolidate, quoted

_PLUS = ("i", "+i", "insert", "c", "create", "r", "u+", "+u", "update_after", "update_postimage", "+1", "1")
_MINUS = ("d", "-d", "delete", "u-", "-u", "update_before", "update_preimage", "-1")


class Changelog(Envelope):
    """The sums of equal rows' diffs."""

    name: ClassVar[str] = "changelog"
    requires: ClassVar[Requirement | None] = Requirement(
        ("diff_column", "op_column"), "Name the column that says what happened to the row."
    )

    def visible_schema(self, settings: EnvelopeSettings, records: Schema) -> Schema:
        """All of the record's columns but the one that says what happens to the row."""
        hidden = str(settings.change_column).lower()
        return records.select(tuple(name for name in records.names if name.lower() != hidden))

    def apply(self, batch: EnvelopeInput) -> Change:
        """Raises SourceError for an operation or a diff that says nothing."""
        settings, name = batch.settings, str(batch.settings.change_column)
        if settings.diff_column:
            diff = quoted(name).cast("bigint")
        else:
            operation = F.lower(F.trim(quoted(name).cast("string")))
            diff = F.when(operation.isin(*_PLUS), 1).when(operation.isin(*_MINUS), -1).cast("bigint")
        marked = batch.records.frame.withColumn(DIFF, diff)
        bad = marked.where(F.col(DIFF).isNull()).limit(1).collect()
        if bad:
            raise SourceError(
                f"source {batch.name}: column {name} holds {bad[0][name]!r}, which is no change",
                f"It may hold a whole number, or one of {', '.join((*_PLUS, *_MINUS))}.",
            )
        updates = consolidate(marked.select(*map(quoted, batch.schema.names), DIFF))
        return Change(batch.changed(updates), False)
