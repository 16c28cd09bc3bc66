"""The rows of a query over relations of models, sources and seeds as they are now, computed on the driver: for what dbt
itself asks, which then opens no session."""

from __future__ import annotations

import logging
import re
import tempfile
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from dbt_incremental_dd.core.schema import DIFF, TIME, Schema
from dbt_incremental_dd.core.time import BEGINNING, now
from dbt_incremental_dd.core.types import (
    BOOLEAN,
    DATE,
    FLOATS,
    INTEGERS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
)
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.order import order_of
from dbt_incremental_dd.frontend.parsed import ParsedQuery, parsed
from dbt_incremental_dd.frontend.recursion import is_recursive
from dbt_incremental_dd.local.ordering import in_order
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Order
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.relation.unopened import Unopened
from dbt_incremental_dd.render.context import InputInterval
from dbt_incremental_dd.runtime.compile import compiled_on_driver
from dbt_incremental_dd.runtime.output import stored_names
from dbt_incremental_dd.runtime.rendered_once import rendered_once
from dbt_incremental_dd.runtime.shown_rows import ShownRows, SourceOf, shown_rows
from dbt_incremental_dd.sources.staged_table import staged_rows
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.write import write_arrow

_LOG = logging.getLogger(__name__)
"""Tells at DEBUG why something is left to Spark."""
_SELECTS = re.compile(r"\s*(/\*.*?\*/\s*|--[^\n]*\n\s*)*(select|with)\b", re.IGNORECASE | re.DOTALL)
_ANSWERED = (*INTEGERS, BOOLEAN, STRING, *FLOATS, DATE, TIMESTAMP, TIMESTAMP_NTZ)
"""Types of which Python's values are those that a session would give; and decimals."""


@dataclass(frozen=True)
class Answer:
    """Rows, in the order that the query asks for."""

    schema: Schema
    rows: pa.Table


def driver_answer(
    session: LazySession, storage: Storage, sql: str, source_of: SourceOf, *, needs_names: bool = True
) -> Answer | None:
    """None for what only Spark answers: other statements and relations, what the driver does not compute, or more rows
    than it does; and where a session is open already. ``sql`` is one statement. ``needs_names``: whether a column that
    the query gives no name has the one that Spark gives it."""
    asked = _asked(session, storage, sql, source_of, needs_names=needs_names)
    if asked is None:
        return None
    try:
        return asked.answer()
    except Exception as why:  # whatever it is: Spark answers, or says what is wrong
        _LOG.debug("for Spark: %s", why)
        return None


def driver_columns(session: LazySession, storage: Storage, sql: str, source_of: SourceOf) -> Schema | None:
    """The columns of a query that ``driver_answer`` may answer; None for others."""
    asked = _asked(session, storage, sql, source_of)
    return None if asked is None else asked.schema


def _asked(
    session: LazySession, storage: Storage, sql: str, source_of: SourceOf, *, needs_names: bool = True
) -> _Asked | None:
    if session.is_open or not _SELECTS.match(sql):
        return None
    try:
        return _compiled(Unopened(session), storage, parsed(sql), source_of, needs_names=needs_names)
    except Exception as why:  # as above
        _LOG.debug("for Spark: %s", why)
        return None


def _compiled(
    session: Unopened, storage: Storage, query: ParsedQuery, source_of: SourceOf, *, needs_names: bool = True
) -> _Asked | None:
    tree = query.tree
    if not isinstance(tree, exp.Query) or is_recursive(tree) or query.uses_pipes:
        return None
    shown = {relation.key: shown_rows(session, storage, relation, source_of) for relation in query.relations}
    given = {key: found for key, found in shown.items() if found is not None}
    rows = sum(found.count for found in given.values())
    if len(given) < len(shown) or rows > storage.thresholds.built_rows:
        return None
    inputs = {key: Input(found.name, found.schema) for key, found in given.items()}
    compiled = compiled_on_driver(session, "the query", query, inputs, spells_out=True, needs_names=needs_names)
    if compiled is None or compiled[0].fallbacks:
        return None
    plan, schema = compiled
    order = _order(tree, schema)
    if order is None or not all(column.type in _ANSWERED or isinstance(column.type, Decimal) for column in schema):
        return None
    return _Asked(session, storage, tuple(given.values()), plan.root, schema, order)


def _order(tree: exp.Query, schema: Schema) -> tuple[tuple[int, Order], ...] | None:
    """The numbers of the columns by which the query's rows are ordered; None where it is not by columns of its own."""
    if any(tree.args.get(clause) for clause in ("sort", "cluster", "distribute")):
        return None
    found, names = [], [name.lower() for name in schema.names]
    order = tree.args.get("order")
    for item in order.expressions if order is not None else ():
        target = item.this
        if isinstance(target, exp.Literal) and target.is_int:
            number = int(target.this) - 1
        elif isinstance(target, exp.Column) and not target.table and target.name.lower() in names:
            number = names.index(target.name.lower())
        else:
            return None
        found.append((number, order_of(item, Expr("NULL"))))
    return tuple(found)


@dataclass(frozen=True)
class _Asked:
    """A query that the driver can compute, over what its relations show. ``order``: numbers of its columns."""

    session: Unopened
    storage: Storage
    given: tuple[ShownRows, ...]
    root: Node
    schema: Schema
    order: tuple[tuple[int, Order], ...]

    def answer(self) -> Answer:
        """Its rows. Raises what computing them does."""
        with tempfile.TemporaryDirectory() as folder:
            found = self._rows(Storage(folder, thresholds=self.storage.thresholds))
        if found is None:
            empty = pa.schema([(column.name, arrow_type(column.type)) for column in self.schema]).empty_table()
            return Answer(self.schema, empty)
        columns = self.root.columns
        by = [Order(Expr.column(columns[number]), item.descending, item.nulls_first) for number, item in self.order]
        return Answer(self.schema, in_order(found, by).arrow.rename_columns(self.schema.names))

    def _rows(self, scratch: Storage) -> Table | None:
        """Each as often as it counts, in the columns of the root; None of nothing. ``scratch``: for what operators
        store, which is thrown away."""
        logs = [(one, one.log or self._log(one, scratch)) for one in self.given]
        inputs = {
            log.name: InputInterval(log, one.schema, BEGINNING, log.frontiers.last if log.files else BEGINNING)
            for one, log in logs
        }
        at = max([now(), *(interval.t1 for interval in inputs.values())])
        return rendered_once(self.session, self.storage, scratch, self.root, inputs, at)

    def _log(self, one: ShownRows, scratch: Storage) -> Log:
        """Of rows that are in no log yet."""
        place, stored = scratch.collection(one.name), stored_names(one.schema)
        log = place.create(stored)
        if one.table is None or not one.table.rows:
            return log
        rows, at = staged_rows(self.storage, one.table), now()
        for name, value in ((TIME, at), (DIFF, 1)):
            rows = rows.append_column(name, pa.repeat(pa.scalar(value, pa.int64()), rows.num_rows))
        return log.commit(Commit(add=(write_arrow(scratch, place.trace_uri, rows, stored),), upper=at + 1))
