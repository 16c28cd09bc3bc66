"""What a source looks like from outside, cheap to tell, and different whenever it may have something new."""

from __future__ import annotations

from collections.abc import Hashable

from dbt_incremental_dd.sources.connectors.registry import connector_of
from dbt_incremental_dd.sources.spec import SourceSpec
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.managed_frontier import declared


def change_token(storage: Storage, spec: SourceSpec) -> Hashable | None:
    """Two that are equal: nothing has come in between. None where only a run can tell: a relation of the catalog.

    A source that is not there, or cannot be looked at just now, looks like one with nothing in it.
    """
    try:
        found = connector_of(spec).change_token(storage, spec)
        if found is None:
            return None
    except OSError:
        found = ()
    return found, declared(storage.collection(spec.name)) if spec.frontier == "managed" else None


def poll_interval(spec: SourceSpec) -> float:
    """Seconds between looks at the token that cost little."""
    return connector_of(spec).poll_interval(spec)
