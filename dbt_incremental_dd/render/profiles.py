"""A rendered plan as a list of its operators, with what each took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dbt_incremental_dd.core.profile import OperatorProfile
from dbt_incremental_dd.differential.explain import described
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Get
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.render.clock import OperatorClock
from dbt_incremental_dd.render.context import InputInterval
from dbt_incremental_dd.trace.files import between
from dbt_incremental_dd.trace.log import total_rows

Deltas = Mapping[int, Relation | None]


def profiles(
    root: Node, clock: OperatorClock, deltas: Deltas, inputs: Mapping[str, InputInterval]
) -> tuple[OperatorProfile, ...]:
    """Each operator once, those that it reads behind it. ``deltas``: by the nodes' ids, as far as they were asked."""
    found = []
    for number, (parent, node) in enumerate(_operators(root, None, {})):
        time = clock.of(id(node))
        found.append(
            OperatorProfile(
                number=number,
                parent=parent,
                operator=type(node).__name__,
                detail=described(node),
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
        source = inputs[node.collection]
        return total_rows(between(source.log.files, source.t0, source.t1))
    found = [_rows_out(child, deltas) for child in node.inputs]
    known = [rows for rows in found if rows is not None]
    return sum(known) if len(known) == len(found) else None
