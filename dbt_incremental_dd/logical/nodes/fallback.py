"""A query that is recomputed."""

from __future__ import annotations

from dataclasses import dataclass

from dbt_incremental_dd.logical.node import Id, Node


@dataclass(frozen=True)
class Fallback(Node):
    """A query kept as text, recomputed whole and subtracted when any operand changes.

    ``sql`` names its operands ``{0}``, ``{1}``, ... and their columns by ``names`` (one tuple an operand). With
    ``temporal`` its answer depends on the time of the run (``dd_now()``), too.
    """

    sql: str
    operands: tuple[Node, ...]
    names: tuple[tuple[str, ...], ...]
    ids: tuple[Id, ...]
    reason: str
    temporal: bool = False

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.ids
