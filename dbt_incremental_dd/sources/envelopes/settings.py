"""What an envelope has to know about the records: how their columns say which row changes, and how."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.sources.setting import names, setting, text


@dataclass(frozen=True)
class EnvelopeSettings:
    """``key``: the columns that identify a row; ``order_by``: those by which a key's latest record is found;
    ``deleted_when``: the condition on a record that takes its key's row away; ``diff_column``, ``op_column``: the
    number, or the operation's name, that a record carries."""

    key: tuple[str, ...] = setting(names, ())
    order_by: tuple[str, ...] = setting(names, ())
    deleted_when: str | None = setting(text)
    diff_column: str | None = setting(text)
    op_column: str | None = setting(text)

    @property
    def change_column(self) -> str | None:
        """The column that says what a record does to its row."""
        return self.diff_column or self.op_column

    def as_spelt(self, *schemas: Schema) -> EnvelopeSettings:
        """With the columns' own spelling of their names, which settings may write in other case; that of the first
        schema which has the column."""

        def own(name: str) -> str:
            found = (column for schema in schemas if (column := schema.find(name)) is not None)
            return next((column.name for column in found), name)

        return replace(
            self,
            key=tuple(map(own, self.key)),
            order_by=tuple(map(own, self.order_by)),
            diff_column=self.diff_column and own(self.diff_column),
            op_column=self.op_column and own(self.op_column),
        )
