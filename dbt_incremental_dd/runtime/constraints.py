"""Constraints, checked before a commit: of every row that is added, and of every key that rows are added to.

Stored rows keep to the constraints that their manifest names. So a run looks at its change alone, and at the stored
rows of the keys that it adds to; only where a constraint is new, at all rows, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import functions as F
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt_incremental_dd.core.errors import ConfigError, ContractError, UnsupportedSQL
from dbt_incremental_dd.core.foreign import is_foreign, reason
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Schema
from dbt_incremental_dd.frontend.check import check
from dbt_incremental_dd.frontend.clock import with_run_time
from dbt_incremental_dd.frontend.parsed import NotParsed, parsed
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.now import uses_now
from dbt_incremental_dd.relation.keys import Keys, keys_of
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.relation.relation import Relation, plus
from dbt_incremental_dd.relation.stored import read
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.runtime.contract import Constraint
from dbt_incremental_dd.trace.files import matching
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import Log, total_rows
from dbt_incremental_dd.trace.spark_reader import struct

_SHOWN = 5
"""Relation that an error names."""
_LONGEST = 60
"""Characters of a value that it shows."""


@dataclass(frozen=True)
class Constrained:
    """A model's rows: its columns, and the ``log`` of what is stored of it; None where nothing is, or is kept."""

    session: LazySession
    storage: Storage
    name: str
    schema: Schema
    log: Log | None

    @cached_property
    def ids(self) -> Mapping[str, str]:
        """For each column a name that any expression can have."""
        return {column.name: f"c{number}" for number, column in enumerate(self.schema)}

    @cached_property
    def workspace(self) -> Workspace:
        """Where its rows are computed."""
        return Workspace(self.session, self.storage)

    def updates(self, columns: Sequence[str], keys: Keys | None = None) -> Relation | None:
        """What is stored of some columns, by id; of the rows that ``keys`` admits."""
        if self.log is None:
            return None
        names = {self.ids[name]: name for name in columns}
        values = {names[id]: found for id, found in keys.values.items()} if keys else {}
        files = matching(self.log.files, values)
        if not files:
            return None
        wanted = Schema((*(c for c in self.schema if c.name in columns), DIFF_COLUMN))
        thresholds = self.storage.thresholds
        is_probed = keys is not None and keys.is_local and (values or total_rows(files) <= thresholds.found_rows)
        most = thresholds.probed_rows if is_probed else 0
        rows = read(self.workspace, self.log.uri, files, wanted, most=most, values=values).select(list(names.items()))
        return rows if keys is None else keys.restricted(rows)


def enforce(
    relation: Constrained, constraints: Iterable[Constraint], proven: frozenset[Constraint], change: Relation | None
) -> None:
    """Raises ContractError where the relation's rows, with the ``change`` (by column names), violate a constraint.

    ``proven``: those that the stored rows keep to.
    """
    named = None if change is None else _by_ids(relation, change)
    old = [constraint for constraint in constraints if constraint in proven or relation.log is None]
    new = [constraint for constraint in constraints if constraint not in old]
    if old and named is not None:
        _enforce(relation, old, named, beside_stored=True)
    if new:
        total = plus([relation.updates(relation.schema.names), named])
        if total is not None:
            _enforce(relation, new, total.consolidate(), beside_stored=False)


def _by_ids(relation: Constrained, rows: Relation) -> Relation:
    """The rows with their columns by id."""
    return rows.select([(id, name) for name, id in relation.ids.items()])


def require_meaning(relation: Constrained, constraints: Iterable[Constraint]) -> None:
    """Raises ConfigError for a constraint that cannot be checked of the relation's rows. Runs no job."""
    for constraint in constraints:
        absent = [name for name in constraint.columns if relation.schema.find(name) is None]
        if absent:
            raise _wrong(relation, constraint, f"there is no column {absent[0]}")
        if constraint.type == "check":
            _analyse(relation, constraint)


def _analyse(relation: Constrained, constraint: Constraint) -> None:
    """A condition over a row's own columns, which always gives the same answer."""
    try:
        tree = Expr(constraint.expression).tree
        query = with_run_time(parsed(f"SELECT {constraint.expression}"), {})
        check(query)
    except (UnsupportedSQL, NotParsed, SqlglotError) as error:
        raise _wrong(relation, constraint, str(error).splitlines()[0]) from error
    if tree.find(exp.Query) is not None or uses_now(query.sql):
        raise _wrong(relation, constraint, "it is not about the columns of one row alone")
    empty = relation.session.spark.createDataFrame([], struct(relation.schema))
    try:
        empty.toDF(*relation.ids.values()).where(F.expr(_violation(relation, constraint).sql)).schema  # noqa: B018 - analysed now
    except Exception as error:
        if not is_foreign(error):
            raise
        raise _wrong(relation, constraint, reason(error)) from error


def _wrong(relation: Constrained, constraint: Constraint, why: str) -> ConfigError:
    return ConfigError(
        f"{relation.name}: {constraint.title} cannot be checked: {why}", "Correct it, or write a dbt test instead."
    )


def _enforce(relation: Constrained, constraints: Sequence[Constraint], rows: Relation, *, beside_stored: bool) -> None:
    added = _above(rows, 0)
    of_rows = [constraint for constraint in constraints if constraint.type != "unique"]
    if of_rows:
        violations = [_violation(relation, constraint) for constraint in of_rows]
        found = _first(added.filter(Expr(" OR ".join(f"({violation.sql})" for violation in violations))))
        for constraint, violation in zip(of_rows, violations, strict=True) if found else ():
            wrong = _first(added.filter(violation))
            if wrong:
                raise _violated(relation, constraint, "rows", wrong)
    for constraint in constraints:
        if constraint.type in ("unique", "primary_key"):
            twice = _twice(relation, constraint, rows, beside_stored=beside_stored)
            if _first(twice):
                wrong = _first(keys_of(twice, _ids(relation, constraint)).restricted(added))
                raise _violated(relation, constraint, "rows whose key is there more than once", wrong)


def _violation(relation: Constrained, constraint: Constraint) -> Expr:
    """True of a row that the constraint does not allow by itself."""
    if constraint.type != "check":
        return Expr(" OR ".join(f"{id} IS NULL" for id in _ids(relation, constraint)))
    condition = Expr(constraint.expression)
    by = {}
    for reference in condition.refs:
        column = relation.schema.find(reference)
        if column is None:
            raise _wrong(relation, constraint, f"there is no column {reference}")
        by[reference] = Expr(relation.ids[column.name])
    return Expr(f"NOT ({Expr.of(condition.substitute(by).tree).sql})")


def _twice(relation: Constrained, constraint: Constraint, rows: Relation, *, beside_stored: bool) -> Relation:
    """The keys that have more than one row. Of stored rows those of keys that come to have more are read."""
    ids = _ids(relation, constraint)
    present = Expr(" AND ".join(f"{id} IS NOT NULL" for id in ids))
    sums = _above(rows.filter(present).columns(ids).consolidate(), 0)
    if beside_stored and not sums.is_empty:
        names = {id: name for name, id in relation.ids.items()}
        total = plus([sums, relation.updates([names[id] for id in ids], keys_of(sums, ids))])
        assert total is not None
        sums = total.consolidate()
    return _above(sums, 1)


def _above(rows: Relation, count: int) -> Relation:
    """The rows of which there come to be more than so many."""
    return rows.filter(Expr(f"{DIFF} > {count}L"))


def _ids(relation: Constrained, constraint: Constraint) -> tuple[str, ...]:
    columns = (relation.schema.find(name) for name in constraint.columns)
    return tuple(relation.ids[column.name] for column in columns if column is not None)


def _first(rows: Relation) -> list[dict[str, Any]]:
    """One more than are shown, at most."""
    table = rows.first((), _SHOWN + 1).collected().table
    assert table is not None
    return list(table.arrow.to_pylist())


def _violated(relation: Constrained, constraint: Constraint, what: str, found: list[dict[str, Any]]) -> ContractError:
    names = {id: name for name, id in relation.ids.items()}
    shown = [", ".join(f"{names[id]}: {_value(v)}" for id, v in row.items() if id in names) for row in found[:_SHOWN]]
    more = ", ..." if len(found) > _SHOWN else ""
    return ContractError(
        f"{relation.name}: {constraint.title} is violated by {what}: {', '.join(f'({row})' for row in shown)}{more}",
        "Nothing of this run is stored. Correct the data or the SQL, or take the constraint out of the contract.",
    )


def _value(value: object) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
