"""Envelope ``changelog``: each record says how a row's multiplicity changes, by a number or an operation's name."""

from __future__ import annotations

from typing import ClassVar

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.sources.envelopes.envelope import Change, Envelope, EnvelopeInput, Requirement
from dbt_incremental_dd.sources.envelopes.settings import EnvelopeSettings
from dbt_incremental_dd.sources.records import column_of, some
from dbt_incremental_dd.trace.spark_reader import quote_name

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
        column = quote_name(column_of(name))
        diff = f"CAST({column} AS BIGINT)" if settings.diff_column else _diff_of_operation(column)
        bad = some(batch.records.filter(Expr(f"({diff}) IS NULL")), 1)
        if bad is None or bad.num_rows:
            shown = None if bad is None else bad[column_of(name)][0].as_py()
            raise SourceError(
                f"source {batch.name}: column {name} holds {shown!r}, which is no change",
                f"It may hold a whole number, or one of {', '.join((*_PLUS, *_MINUS))}.",
            )
        rows = [(own, Expr(quote_name(own))) for own in batch.schema.names]
        return Change(batch.records.map(rows, Expr(diff)).consolidate())


def _diff_of_operation(column: str) -> str:
    operation = f"lower(trim(CAST({column} AS STRING)))"
    plus, minus = (", ".join(f"'{word}'" for word in words) for words in (_PLUS, _MINUS))
    return f"CASE WHEN {operation} IN ({plus}) THEN 1L WHEN {operation} IN ({minus}) THEN -1L END"
