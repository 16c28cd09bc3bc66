"""A model's SQL as its manifest has it. Whoever can write the state root can write that, so it is run only where it
cannot do anything but read its inputs, or where this user has compiled it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.parsed import ParsedQuery
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compile import fingerprint
from dbt_incremental_dd.runtime.plan_key import VARIABLE
from dbt_incremental_dd.runtime.routines import routines
from dbt_incremental_dd.runtime.stored_plan import has_signed
from dbt_incremental_dd.trace.layout import CollectionStore

_REACHES_OUT = re.compile(
    r"reflect|java_method|\bidentifier\b|\b(?:transform|map|reduce)\b.*\busing\b", re.IGNORECASE | re.DOTALL
)
"""Looked for in the text itself, in comments and strings as well: Java's methods, names that are computed, scripts."""


def require_safe(
    session: LazySession,
    place: CollectionStore,
    query: ParsedQuery,
    inputs: Mapping[str, Input],
    history: Mapping[str, Any],
) -> None:
    """Raises StateError where the SQL calls the user's own functions, or what may reach out of the query, and was not
    compiled by this user."""
    own = routines(session, query)
    found = _REACHES_OUT.search(query.sql)
    if not own and found is None:
        return
    if has_signed(place, fingerprint(session.meaning, query, inputs, own, history)):
        return
    what = next(iter(own), None) or (found[0].split()[0] if found else "")
    raise StateError(
        f"the SQL that is stored of {place.name} calls {what}, and it is not known to be a model of this user",
        f"Run the model as this user (dbt run --full-refresh --select {place.name.split('.')[-1]}), or let all who run "
        f"and verify it have one {VARIABLE}.",
    )
