"""A rendered plan as a list of its operators, with what each took."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping

from dbt_incremental_dd.core.profile import OperatorProfile
from dbt_incremental_dd.differential.explain import described
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Get
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.render.clock import OperatorClock
from dbt_incremental_dd.render.context import InputInterval

Deltas = Mapping[int, Relation | None]
_DETAILS: dict[int, tuple[weakref.ref[Node], tuple[str, ...]]] = {}
"""By the ids of plans' roots that are there: to describe a join of several takes a millisecond."""


def profiles(
    root: Node, clock: OperatorClock, deltas: Deltas, inputs: Mapping[str, InputInterval]
) -> tuple[OperatorProfile, ...]:
    """Each operator once, those that it reads behind it. ``deltas``: by the nodes' ids, as far as they were asked."""
    found, details = [], _details(root)
    for number, (parent, node) in enumerate(_operators(root, None, {})):
        time = clock.of(id(node))
        found.append(
            OperatorProfile(
                number=number,
                parent=parent,
                operator=type(node).__name__,
                detail=details[number],
                seconds=time.seconds,
                own_seconds=time.own_seconds,
                calls=time.calls,
                rows_in=_rows_in(node, deltas, inputs),
                rows_out=_rows_out(node, deltas),
                rows_read=time.rows_read,
                rows_found=time.rows_found,
                bytes_read=time.bytes_read,
            )
        )
    return tuple(found)


def _details(root: Node) -> tuple[str, ...]:
    """What each operator is, in their order. Computed once for a plan."""
    known = _DETAILS.get(id(root))
    if known is not None and known[0]() is root:
        return known[1]
    found = tuple(described(node) for _, node in _operators(root, None, {}))
    key = id(root)
    _DETAILS[key] = weakref.ref(root, lambda _: _DETAILS.pop(key, None)), found
    return found


def _operators(node: Node, parent: int | None, numbers: dict[int, int]) -> Iterator[tuple[int | None, Node]]:
    """Each with its reader's number: the first one's, where several read it."""
    if id(node) in numbers:
        return
    number = numbers[id(node)] = len(numbers)
    yield parent, node
    for child in node.inputs:
        yield from _operators(child, number, numbers)


def _rows_out(node: Node, deltas: Deltas) -> int | None:
    rows = deltas.get(id(node))
    if rows is None:
        return 0 if id(node) in deltas else None
    return rows.table.num_rows if rows.table is not None else None


def _rows_in(node: Node, deltas: Deltas, inputs: Mapping[str, InputInterval]) -> int | None:
    if isinstance(node, Get):
        return inputs[node.collection].changed
    found = [_rows_out(child, deltas) for child in node.inputs]
    known = [rows for rows in found if rows is not None]
    return sum(known) if len(known) == len(found) else None
