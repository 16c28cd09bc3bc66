"""The columns of the collections that tell of runs, and the rows of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbt_incremental_dd.core.profile import PHASES, Profile
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.core.types import DOUBLE, LONG, STRING
from dbt_incremental_dd.runtime.request import Outcome

RUNS, OPERATORS = "dd_runs", "dd_run_operators"
"""Names of collections. They have no schema, so that no model or source is called like them."""
FAILED = "failed"
"""In place of the strategy of a run that has failed."""
Row = dict[str, Any]

_KEY = {"model": STRING, "invocation": STRING, "began": LONG}
SCHEMAS: Mapping[str, Schema] = {
    name: Schema(tuple(Column(column, dtype) for column, dtype in columns.items()))
    for name, columns in {
        RUNS: {
            **_KEY,
            **{"ended": LONG, "strategy": STRING, "why": STRING, "error": STRING, "seconds": DOUBLE},
            **{f"{phase}_seconds": DOUBLE for phase in PHASES},
            **{"as_of": LONG, "lag": LONG, "input_lag": LONG, "held_back_by": STRING},
            **{"updates_in": LONG, "updates_out": LONG, "rows_added": LONG, "rows_removed": LONG},
            **{"rows_read": LONG, "rows_found": LONG, "bytes_read": LONG, "rows_written": LONG, "bytes_written": LONG},
            **{"fallbacks": STRING, "unchanged": LONG},
        },
        OPERATORS: {
            **_KEY,
            **{"number": LONG, "parent": LONG, "operator": STRING, "detail": STRING},
            **{"seconds": DOUBLE, "own_seconds": DOUBLE, "calls": LONG, "rows_in": LONG, "rows_out": LONG},
            **{"rows_read": LONG, "rows_found": LONG, "bytes_read": LONG},
        },
    }.items()
}
"""The visible columns, by the collection's name."""
_LONGEST = 2_000
"""Characters of a text."""


def run_row(invocation: str, began: Time, ended: Time, outcome: Outcome) -> Row:
    """A run's row in ``dd_runs``, but for ``unchanged``. Times in ms."""
    reads = outcome.reads
    return {
        **_timed(outcome.name, invocation, began, ended, outcome.profile),
        "strategy": outcome.strategy,
        "why": _text(outcome.why),
        "seconds": outcome.seconds,
        "as_of": outcome.as_of,
        "lag": ended - outcome.as_of,
        "input_lag": outcome.input_lag,
        "held_back_by": _text(outcome.held_back_by),
        "updates_in": outcome.input_rows,
        "updates_out": outcome.updates,
        "rows_added": outcome.rows_added,
        "rows_removed": outcome.rows_removed,
        "rows_read": reads.rows,
        "rows_found": reads.found,
        "bytes_read": reads.bytes,
        "rows_written": reads.written,
        "bytes_written": reads.bytes_written,
        "fallbacks": _text("; ".join(outcome.fallbacks)),
    }


def failed_row(model: str, invocation: str, began: Time, ended: Time, profile: Profile, error: Exception) -> Row:
    """The same of a run that has failed: why, and when."""
    seconds = (ended - began) / 1000
    told = {"strategy": FAILED, "error": _text(str(error) or type(error).__name__), "seconds": seconds}
    return {**_timed(model, invocation, began, ended, profile), **told}


def operator_rows(row: Row, profile: Profile) -> Iterator[Row]:
    """The rows in ``dd_run_operators`` of the run that has that row."""
    for one in profile.operators:
        yield {**{name: row[name] for name in _KEY}, **vars(one), "detail": _text(one.detail)}


def _timed(model: str, invocation: str, began: Time, ended: Time, profile: Profile) -> Row:
    phases = {f"{name}_seconds": seconds for name, seconds in profile.phases.items()}
    return {"model": model, "invocation": invocation, "began": began, "ended": ended, **phases}


def _text(text: str) -> str | None:
    """NULL for nothing; what is no Unicode is replaced."""
    return text[:_LONGEST].encode(errors="replace").decode() or None
