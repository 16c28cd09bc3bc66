"""The rows of a query over models' relations as they are now, computed on the driver: for dbt's tests, which then open
no session."""

from __future__ import annotations

import logging
import re
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.time import BEGINNING
from dbt_incremental_dd.core.types import BOOLEAN, DATE, DOUBLE, INTEGERS, STRING, Decimal
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.parsed import ParsedQuery, parsed
from dbt_incremental_dd.frontend.recursion import is_recursive
from dbt_incremental_dd.frontend.relations import RelationName
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.relation.lazy_session import LazySession, SessionMemory
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.render.context import Context, InputInterval
from dbt_incremental_dd.render.inner import InnerTraces
from dbt_incremental_dd.render.renderer import Renderer
from dbt_incremental_dd.runtime.compile import compiled_on_driver
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.columns import visible_schema
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import Log, total_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)
"""Tells at DEBUG why something is left to Spark."""
_SELECTS = re.compile(r"\s*(/\*.*?\*/\s*|--[^\n]*\n\s*)*(select|with)\b", re.IGNORECASE | re.DOTALL)
_ANSWERED = (*INTEGERS, BOOLEAN, STRING, DOUBLE, DATE)
"""Types of which Python's values are those that a session would give; and decimals."""


@dataclass(frozen=True)
class Answer:
    """Rows in no order."""

    schema: Schema
    rows: pa.Table


def driver_answer(session: LazySession, storage: Storage, sql: str) -> Answer | None:
    """None for what only Spark answers: other statements and relations, an order, what the driver does not compute, or
    more rows than it does; and where a session is open already. ``sql`` is one statement."""
    if session.is_open or not _SELECTS.match(sql):
        return None
    try:
        return _answer(_Unopened(session.memory), storage, parsed(sql))
    except Exception as why:  # whatever it is: Spark answers, or says what is wrong
        _LOG.debug("for Spark: %s", why)
        return None


class _Unopened(LazySession):
    """What is remembered of a session, and no session."""

    def __init__(self, memory: SessionMemory) -> None:
        super().__init__(_refused, memory)

    @property
    def spark(self) -> SparkSession:
        return _refused()


def _refused() -> SparkSession:
    raise NotExact("only Spark answers this")


def _answer(session: _Unopened, storage: Storage, query: ParsedQuery) -> Answer | None:
    tree = query.tree
    if not isinstance(tree, exp.Query) or any(tree.args.get(clause) for clause in ("order", "limit", "offset")):
        return None
    if is_recursive(tree) or query.uses_pipes or not query.relations:
        return None
    shown = {relation.key: _shown(session, storage, relation) for relation in query.relations}
    given = {key: found for key, found in shown.items() if found is not None}
    rows = sum(total_rows(log.files) for log, _ in given.values())
    if len(given) < len(shown) or rows > storage.thresholds.built_rows:
        return None
    inputs = {key: Input(log.name, schema) for key, (log, schema) in given.items()}
    compiled = compiled_on_driver(session, "the query", query, inputs)
    if compiled is None or compiled[0].is_temporal or compiled[0].fallbacks:
        return None
    plan, schema = compiled
    if not all(column.type in _ANSWERED or isinstance(column.type, Decimal) for column in schema):
        return None
    found = _rows(session, storage, plan.root, list(given.values()))
    empty = pa.schema([(column.name, arrow_type(column.type)) for column in schema]).empty_table()
    return Answer(schema, empty if found is None else found.arrow.rename_columns(schema.names))


def _shown(session: LazySession, storage: Storage, relation: RelationName) -> tuple[Log, Schema] | None:
    """The collection that a relation shows, and its columns; None for another relation, or if that is not certain."""
    if len(relation.parts) != 2 or session.memory.relation_type(*relation.key.split(".", 1)) != "view":
        return None
    place = storage.collection(relation.key)
    log = place.log()
    manifest = None if log is None else place.read_manifest(log.manifest)
    if log is None or not isinstance(manifest, ModelManifest):
        return None
    is_plain = manifest.fingerprint and not manifest.history and not manifest.output
    is_its = manifest.relation.replace("`", "").lower() == relation.key
    return (log, visible_schema(manifest, log)) if is_plain and is_its else None


def _rows(session: LazySession, storage: Storage, root: Node, given: list[tuple[Log, Schema]]) -> Table | None:
    """The plan's rows, each as often as it counts, in the columns of its root; None of nothing. What its operators
    store is thrown away."""
    inputs = {log.name: InputInterval(log, schema, BEGINNING, log.frontiers.last) for log, schema in given}
    now = max(interval.t1 for interval in inputs.values())
    with tempfile.TemporaryDirectory() as folder:
        scratch = Storage(folder, thresholds=storage.thresholds)
        states = InnerTraces(Workspace(session, scratch), scratch.collection("q"), {}, fresh=True, report=_ignore)
        workspace = Workspace(session, storage)
        context = Context(workspace, BEGINNING, now, at=now, inputs=inputs, output=None, inner=states, report=_ignore)
        rows = Renderer(context, root).run()
        if rows is None:
            return None
        found = rows.multiset().expand().select([(id, id) for id in root.columns]).table
        if found is None:
            raise NotExact("rows that are in Spark")
        return Table(found.arrow.select(list(root.columns)), found.schema.select(root.columns))


def _ignore(line: str) -> None:
    """What nobody reads."""
