"""The extras of asset events."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperator, Context

from airflow_differential import collections
from airflow_differential.times import milliseconds, text


def set_outlet_extra(operator: BaseOperator, context: Context, extra: dict[str, Any]) -> None:
    """Sets the extra of the events of an operator's outlets."""
    for asset in operator.outlets or ():
        context["outlet_events"][asset].extra = extra


def advance(
    operator: BaseOperator, context: Context, state_root: str, source: str, up_to: str, *, first: bool
) -> dict[str, Any]:
    """Advances a source's frontier, and sets the extra of the outlets' events to ``{"source", "complete_up_to"}``,
    which it returns."""
    found = collections.advance(state_root, source, milliseconds(up_to), first=first)
    operator.log.info("%s is complete up to %s", source, text(found))
    extra = {"source": source, "complete_up_to": found}
    set_outlet_extra(operator, context, extra)
    return extra
