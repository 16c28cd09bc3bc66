"""A filter and a projection, through which a collection's changes pass on their way to a subscriber.

Both are linear: the selection of a change is the change of the selection, so nothing else has to be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import duckdb
import pyarrow as pa
from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from dbt_incremental_dd.core.errors import QueryCanceled, QueryError
from dbt_incremental_dd.core.schema import DIFF, TIME
from dbt_incremental_dd.duck.connections import confined
from dbt_incremental_dd.untrusted.limits import Limits, StatementRun, Watchdog
from dbt_incremental_dd.untrusted.parsed_select import parse_select

_LINEAR = {"expressions", "from_", "from", "where", "kind", "hint"}
_REMEDY = (
    "SUBSCRIBE takes SELECT ... FROM one collection WHERE ...; make a model of anything else, and subscribe to it."
)
_ROWS = "dd_rows"
SECONDS = 60.0
"""Time limit for applying it to one batch of changes."""


@dataclass(frozen=True)
class Selection:
    """``sql``: one SELECT over one collection, in DuckDB's dialect. Raises QueryError if it is anything else, or not
    deterministic."""

    sql: str

    def __post_init__(self) -> None:
        self._require_linear(self._select)
        if len(parse_select(self.sql).tables) != 1:
            raise QueryError("a subscription is to one collection", _REMEDY)

    @cached_property
    def _select(self) -> exp.Select:
        try:
            found = parse(self.sql, read="duckdb")
        except (SqlglotError, RecursionError) as error:
            raise QueryError(f"the SELECT to subscribe to cannot be read: {error}", _REMEDY) from error
        if len(found) != 1 or not isinstance(found[0], exp.Select):
            raise QueryError("what is subscribed to is not one SELECT", _REMEDY)
        return found[0]

    @property
    def collection(self) -> str:
        """The collection's name as written, with its schema if there is one."""
        table = self._select.find(exp.Table)
        assert table is not None
        return ".".join(part.name for part in table.parts)

    def apply(self, updates: pa.Table) -> pa.Table:
        """The selection of updates, by time. ``updates``: visible columns, dd_time, dd_diff. Raises QueryError if
        DuckDB cannot compute it."""
        sql = self._statement_over(tuple(updates.column_names))
        # DuckDB's own reading of the generated text is what counts.
        if parse_select(sql).tables != (("", _ROWS),):
            raise QueryError("a subscription is to one collection", _REMEDY)
        run = StatementRun(watchdog(), SECONDS)
        with confined() as connection:
            connection.register(_ROWS, updates)
            try:
                with run.computing(connection):
                    found = connection.sql(sql).to_arrow_table()
            except duckdb.Error as error:
                if run.reason is not None:
                    raise QueryCanceled(f"the SELECT to subscribe to: {run.reason}", _REMEDY) from error
                raise QueryError(f"the SELECT to subscribe to cannot be computed: {error}", _REMEDY) from error
        return found.set_column(found.num_columns - 1, DIFF, found[DIFF].cast(pa.int64()))

    def _statement_over(self, names: tuple[str, ...]) -> str:
        """The statement over a table of updates. Equal rows of one time are summed up; zero sums are dropped."""
        select = self._select.copy()
        table = select.find(exp.Table)
        assert table is not None
        alias = table.alias or table.name
        table.replace(exp.alias_(exp.to_table(_ROWS), exp.to_identifier(alias, quoted=True), table=True))
        visible = [name for name in names if name not in (TIME, DIFF)]
        listed: list[exp.Expr] = []
        for expression in select.expressions:
            star = isinstance(expression, exp.Star) or (
                isinstance(expression, exp.Column) and isinstance(expression.this, exp.Star)
            )
            listed += [exp.column(name, quoted=True) for name in visible] if star else [expression]
        select.set("expressions", [*listed, exp.column(TIME), exp.column(DIFF)])
        rows = select.sql(dialect="duckdb")
        width = len(listed)
        groups = ", ".join(str(number) for number in range(1, width + 2))
        outer = ", ".join(f"c{number}" for number in range(width))
        named = f"FROM ({rows}) AS selected({outer}{', ' if outer else ''}t, d)"
        shown = ", ".join(f'c{number} AS "{_name(one)}"' for number, one in enumerate(listed))
        return f"SELECT {shown}, t AS {TIME}, sum(d) AS {DIFF} {named} GROUP BY {groups} HAVING sum(d) <> 0 ORDER BY t"

    def _require_linear(self, select: exp.Select) -> None:
        beyond = sorted({key for key, value in select.args.items() if value} - _LINEAR)
        if beyond:
            raise QueryError(f"a subscription has no {', '.join(beyond).replace('_', '')}", _REMEDY)
        tables = list(select.find_all(exp.Table))
        if len(tables) != 1 or not isinstance(tables[0].this, exp.Identifier):
            raise QueryError("a subscription is to one collection", _REMEDY)
        if len(list(select.find_all(exp.Select))) != 1 or select.find(exp.AggFunc, exp.Window, exp.Unnest):
            raise QueryError("a subscription has no aggregates, windows or subqueries", _REMEDY)
        for star in select.find_all(exp.Star):
            if any(star.args.values()):
                raise QueryError("a subscription has no * without some of the columns", "Name the columns.")
        for function in select.find_all(exp.Func):
            name = function.sql(dialect="duckdb").partition("(")[0].strip().lower()
            if name in _not_deterministic():
                raise QueryError(f"{name} is not the same whenever it is computed", "Leave it out.")


@cache
def watchdog() -> Watchdog:
    """Watches all selections of the process."""
    return Watchdog(Limits().bytes)


def _name(selected: exp.Expr) -> str:
    name = selected.alias_or_name or selected.sql(dialect="duckdb")
    return str(name).replace('"', '""')


@cache
def _not_deterministic() -> frozenset[str]:
    """Functions that DuckDB reports as not deterministic, aggregates and table functions."""
    with confined() as connection:
        found = connection.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() "
            "WHERE stability <> 'CONSISTENT' OR function_type IN ('aggregate', 'table')"
        ).fetchall()
    scalar = {"unnest", "generate_series", "range"}
    return frozenset({name.lower() for (name,) in found} - scalar | {"current_timestamp", "current_time"})
