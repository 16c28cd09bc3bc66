"""A table that is there already becomes a new model's first contents: read once, and nothing of the query is computed.

Nothing is adopted that was not asked for, and nothing is visible before the model's own commit.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.foreign import reason
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.types import DATE, INTEGERS, Decimal, Type
from dbt_incremental_dd.logical.sql_types import sql_type
from dbt_incremental_dd.relation.query import counted
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.runtime.adopt import Verify
from dbt_incremental_dd.runtime.request import ModelRequest
from dbt_incremental_dd.trace.spark_reader import quote_name, schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dbt_incremental_dd.render.context import Context
    from dbt_incremental_dd.runtime.run_context import RunContext

_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}


@dataclass(frozen=True)
class Adoption:
    """The rows of ``table``, as SQL names it, that ``model`` takes over."""

    model: str
    table: str
    verify: Verify

    @property
    def source(self) -> str:
        """The table as messages name it."""
        return self.table.replace("`", "")

    @staticmethod
    def of(run: RunContext, request: ModelRequest) -> Adoption | None:
        """What the model's config asks for; None if that is nothing, or if there is no table of the model's name."""
        asked = request.config.adopt
        if asked is None or request.full_refresh:
            return None
        if not asked.table and not run.catalog.has_table(request.relation):
            run.report(f"{request.name}: there is no table of its name to adopt; it is computed")
            return None
        return Adoption(request.name, asked.table or request.relation, asked.verify)

    def rows(self, context: Context, schema: Schema, ids: tuple[str, ...], moments: Collection[str] = ()) -> Relation:
        """The table's rows, each as often as it is there, under ``ids``, which stand for the columns of ``schema``.
        ``moments``: those that may be dates in the table. Raises ConfigError where the columns are not the table's."""
        try:
            frame = context.spark.sql(f"SELECT * FROM {self.table}")
            found = schema_of(frame.schema)
        except (AnalysisException, ParseException) as error:
            raise ConfigError(
                f"{self.model}: {self.source} cannot be adopted: {reason(error)}", "Correct `adopt`, or remove it."
            ) from error
        self._require(found, schema, moments)
        cast = (_cast(frame, found, name, type) for name, type in ((c.name, c.type) for c in schema))
        return counted(context.workspace, frame.selectExpr(*cast).toDF(*ids), frame.count())

    def _require(self, found: Schema, wanted: Schema, moments: Collection[str]) -> None:
        have = {column.name.lower(): column for column in found}
        names = {column.name.lower() for column in wanted}
        pairs = [(column, have[column.name.lower()]) for column in wanted if column.name.lower() in have]
        changes = {
            "not in the table": [c.name for c in wanted if c.name.lower() not in have],
            "not in the query": [c.name for c in found if c.name.lower() not in names],
            "of other types": [
                f"{c.name} ({sql_type(own.type)} in place of {sql_type(c.type)})"
                for c, own in pairs
                if not _holds(c.type, own.type, is_moment=c.name in moments)
            ],
        }
        shown = "; ".join(f"{kind}: {', '.join(columns)}" for kind, columns in changes.items() if columns)
        if shown:
            raise ConfigError(
                f"{self.model}: {self.source} cannot be adopted, for its columns are not the query's ({shown})",
                "Bring the query or the table to the other's columns, or remove `adopt`.",
            )


def _cast(frame: DataFrame, found: Schema, name: str, type: Type) -> str:
    column = next(column for column in found if column.name.lower() == name.lower())
    quoted = quote_name(column.name)
    return quoted if column.type == type else f"CAST({quoted} AS {sql_type(type)})"


def _holds(wanted: Type, found: Type, *, is_moment: bool) -> bool:
    """Whether a column has every value of the other type, as the same value; a moment may be a date's first."""
    if is_moment and found == DATE:
        return True
    if isinstance(wanted, Decimal):
        if isinstance(found, Decimal):
            return found.scale <= wanted.scale and found.precision - found.scale <= wanted.precision - wanted.scale
        return _DIGITS.get(found.text.strip('"'), 99) <= wanted.precision - wanted.scale
    if wanted in INTEGERS and found in INTEGERS:
        return _DIGITS[found.text.strip('"')] <= _DIGITS[wanted.text.strip('"')]
    return wanted == found
