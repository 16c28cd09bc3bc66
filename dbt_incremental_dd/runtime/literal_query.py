"""The rows of a query that reads nothing, not even the time, computed on the driver: a calendar, a list of codes."""

from __future__ import annotations

import logging
import tempfile
from collections import OrderedDict

from dbt_incremental_dd.core.time import BEGINNING
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.relation.lazy_session import Dialect, LazySession
from dbt_incremental_dd.relation.unopened import Unopened
from dbt_incremental_dd.runtime.compile import compiled_on_driver
from dbt_incremental_dd.runtime.rendered_once import rendered_once
from dbt_incremental_dd.trace.layout import Storage

_LOG = logging.getLogger(__name__)
"""Tells at DEBUG why something is left to Spark."""
_KNOWN: OrderedDict[tuple[Dialect, str], Table | None] = OrderedDict()
_MOST_KNOWN = 50
_AT = BEGINNING + 1


def literal_rows(session: LazySession, sql: str) -> Table | None:
    """The rows under the query's names; None for what only Spark computes, or of no rows."""
    key, unopened = (session.dialect, sql), Unopened(session)
    if not session.has_usual_rules or (session.is_open and not _is_alike(session, unopened)):
        return None
    if key not in _KNOWN:
        _KNOWN[key] = _computed(unopened, sql)
        while len(_KNOWN) > _MOST_KNOWN:
            _KNOWN.popitem(last=False)
    return _KNOWN[key]


def _is_alike(session: LazySession, unopened: Unopened) -> bool:
    """Whether what is remembered of the session is as it is set now."""
    return bool(session.memory.settings) and unopened.dialect == session.dialect


def _computed(session: Unopened, sql: str) -> Table | None:
    try:
        compiled = compiled_on_driver(session, "the query", parsed(sql), {}, spells_out=True)
        if compiled is None or compiled[0].fallbacks:
            return None
        plan, schema = compiled
        with tempfile.TemporaryDirectory() as folder:
            scratch = Storage(folder)
            rows = rendered_once(session, scratch, scratch, plan.root, {}, _AT)
        return None if rows is None else Table(rows.arrow.rename_columns(schema.names), schema)
    except Exception as why:  # whatever it is: Spark answers, or says what is wrong
        _LOG.debug("for Spark: %s", why)
        return None
