"""What a model's relation says of itself in the catalog: comments and properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.trace.spark_reader import quote_name

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Description:
    """The relation's ``comment``, those of its ``columns`` by name, and its ``properties``."""

    comment: str = ""
    columns: Pairs = ()
    properties: Pairs = ()

    @staticmethod
    def of(found: Mapping[str, Any]) -> Description:
        """As JSON has it. Raises ValueError for a JSON object that is none."""
        pairs = {name: _pairs_of(found.get(name, ())) for name in ("columns", "properties")}
        return Description(str(found.get("comment", "")), **pairs)

    def head(self, schema: Schema) -> str:
        """What stands between a view's name and its query; nothing of columns that the view has not."""
        return "".join([self._columns(schema), self._comment(), self._properties()])

    def has_columns(self, schema: Schema) -> bool:
        """Whether one of the view's columns has a comment, which ALTER VIEW would drop."""
        return bool(self._columns(schema))

    def _columns(self, schema: Schema) -> str:
        comments = {name.lower(): text for name, text in self.columns}
        if not any(column.name.lower() in comments for column in schema):
            return ""
        return f" ({', '.join(_column(c.name, comments.get(c.name.lower())) for c in schema)})"

    def _comment(self) -> str:
        return f" COMMENT {sql_text(self.comment)}" if self.comment else ""

    def _properties(self) -> str:
        if not self.properties:
            return ""
        return f" TBLPROPERTIES ({', '.join(f'{sql_text(k)} = {sql_text(v)}' for k, v in self.properties)})"


NOTHING = Description()


def _pairs_of(value: object) -> Pairs:
    """Pairs of texts as JSON has them. Raises ValueError for anything else."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ValueError("no pairs")
    found = tuple((name, text) for name, text in value)
    if not all(isinstance(part, str) for pair in found for part in pair):
        raise ValueError("no texts")
    return found


def sql_text(text: str) -> str:
    """A string literal of Spark's."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _column(name: str, comment: str | None) -> str:
    return quote_name(name) + (f" COMMENT {sql_text(comment)}" if comment else "")
