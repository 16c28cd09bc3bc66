"""The condition on the rows that a subscriber may read, as the query engine applies it to contents: rows are values, so
the updates of the rows that it selects are the updates of the selected collection."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from dbt_incremental_dd.core.errors import ConditionError, QueryCanceled, QueryError
from dbt_incremental_dd.core.schema import DIFF, TIME
from dbt_incremental_dd.duck.connections import confined
from dbt_incremental_dd.subscribe.selection import SECONDS, Selection, watchdog
from dbt_incremental_dd.untrusted.limits import StatementRun
from dbt_incremental_dd.untrusted.parsed_select import parse_select

_log = logging.getLogger(__name__)
_ROWS = "dd_rows"


@dataclass(frozen=True)
class Condition:
    """``sql``: on the columns of the collection called ``name``, in DuckDB's dialect."""

    name: str
    sql: str

    def apply(self, updates: pa.Table) -> pa.Table:
        """The updates that it is true for, as they are and in their order; a row for which it fails is none of them.
        Raises ConditionError, which tells nothing
        of the condition nor of the rows, if it cannot be computed."""
        run = StatementRun(watchdog(), SECONDS)
        with confined() as connection:
            connection.register(_ROWS, updates.drop_columns([TIME, DIFF]))
            try:
                with run.computing(connection):
                    mask = connection.sql(f"SELECT TRY((\n{self.sql}\n)) IS TRUE AS held FROM {_ROWS}").to_arrow_table()
            except (duckdb.Error, QueryCanceled) as error:
                _log.warning("the condition on rows of %s cannot be applied: %s", self.name, run.reason or error)
                raise ConditionError(self.name) from None
        return updates.filter(mask["held"])


def require_condition(sql: str) -> None:
    """Raises QueryError unless the text is one expression of a row's columns alone, which is the same whenever it is
    computed: without subqueries and aggregates."""
    if parse_select(f"SELECT {sql}").tables:
        raise QueryError("a condition on rows reads nothing but the row")
    Selection(f"SELECT *\nFROM {_ROWS}\nWHERE (\n{sql}\n)")
