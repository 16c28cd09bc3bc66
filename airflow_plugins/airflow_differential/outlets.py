"""What the events of a task's outlets carry."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperator, Context

from airflow_differential import collections
from airflow_differential.times import milliseconds, text


def tell(operator: BaseOperator, context: Context, extra: dict[str, Any]) -> None:
    """Lets the events of an operator's outlets carry that."""
    for asset in operator.outlets or ():
        context["outlet_events"][asset].extra = extra


def advance(
    operator: BaseOperator, context: Context, state_root: str, source: str, up_to: str, *, first: bool
) -> dict[str, Any]:
    """Advances a source's frontier, and lets the outlets' events carry ``{"source", "complete_up_to"}``; returns it."""
    found = collections.advance(state_root, source, milliseconds(up_to), first=first)
    operator.log.info("%s is complete up to %s", source, text(found))
    told = {"source": source, "complete_up_to": found}
    tell(operator, context, told)
    return told
