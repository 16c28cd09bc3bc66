"""What a user should know of a model that does more in each run than its inputs' changes ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from dbt_incremental_dd.core.time import now
from dbt_incremental_dd.differential.lower import DifferentialPlan
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Map, Union

_DATE = re.compile(r"(?<!\d)(\d{4})-?(\d\d)-?(\d\d)(?!\d)")
_SECONDS = re.compile(r"(?<!\d)\d{10}(?!\d)|(?<!\d)\d{13}(?!\d)")
_DAY = timedelta(days=1)


def hints(name: str, plan: DifferentialPlan) -> Iterator[str]:
    """Of a model's plan. A column that is the run's time alone makes every row another one in each run."""
    found = [name for id, name in zip(plan.root.columns, plan.names, strict=True) if _is_clock(plan.root, id)]
    if found:
        yield (
            f"{', '.join(found)} is the time of the run, so that all rows change whenever it does. "
            f"Without it, dd_time in {name.split('.')[-1]}__changes tells when each row came"
        )


def _is_clock(node: Node, id: Id) -> bool:
    """Whether the column's value is one of the run's time, and of nothing else."""
    if isinstance(node, Map):
        expr = dict(node.outputs)[id]
        return _is_clock(node.input, expr.as_column) if expr.as_column else expr.uses_now and not expr.refs
    if isinstance(node, Union):
        position = node.ids.index(id)
        return any(_is_clock(operand, operand.columns[position]) for operand in node.operands)
    return any(id in child.columns and _is_clock(child, id) for child in node.inputs)


def of_the_invocation(former: str, sql: str, invocation: str) -> str | None:
    """What to say of a query that differs from the former one only by values that dbt has put in: the invocation's
    time or id. None where it differs otherwise."""
    before, after = parsed(former).words, parsed(sql).words
    pairs = [(a, b) for a, b in zip(before, after, strict=False) if a != b]
    if len(before) != len(after) or any(a[0] != b[0] for a, b in pairs):
        return None
    if not pairs or not all(_is_of_now(b[1]) or invocation in b[1] for _, b in pairs):
        return None
    if any(invocation in b[1] for _, b in pairs):
        remedy = "Leave invocation_id out of the query"
    else:
        remedy = "Write {{ dd_now() }} or current_timestamp() instead of run_started_at and the like"
    return f"its SQL has another value of the invocation in each run ({pairs[0][1][1]}). {remedy}"


def _is_of_now(text: str) -> bool:
    """Whether the literal tells a time within a day of the clock's."""
    clock = datetime.fromtimestamp(now() / 1000, UTC)
    for year, month, day in _DATE.findall(text):
        try:
            found = datetime(int(year), int(month), int(day), tzinfo=UTC)
        except ValueError:
            continue
        if abs(found - clock) <= 2 * _DAY:
            return True
    return any(abs(int(found[:10]) - clock.timestamp()) <= _DAY.total_seconds() for found in _SECONDS.findall(text))
