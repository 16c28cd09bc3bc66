"""What an operator stores between runs: an inner trace beside the model's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dbt_incremental_dd.core.schema import DIFF, Schema
from dbt_incremental_dd.core.types import Type
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node


@dataclass(frozen=True)
class State:
    """An inner trace of ``columns``, sorted by ``arranged_by``, with ``diffs`` that consolidation sums.

    With more than ``dd_diff`` alone, a diff is a vector: accumulators change by adding, like multiplicities do.
    """

    name: str
    columns: tuple[Id, ...]
    arranged_by: tuple[Id, ...]
    diffs: tuple[str, ...] = (DIFF,)


@dataclass(frozen=True)
class OutputState:
    """The operator's output is the model's: what it would store is read from there.

    ``names`` pairs each of the operator's column ids with the model's column name.
    """

    names: tuple[tuple[Id, str], ...]


class Types(Protocol):
    """Tells types, as Spark derives them."""

    def of(self, node: Node) -> Schema:
        """A logical node's columns, by id, with their types."""

    def of_expression(self, expr: Expr, over: Schema) -> Type:
        """The type of an expression over a relation of that schema."""


class Names:
    """Hands out names for states, the same ones for the same plan."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def new(self, kind: str) -> str:
        """``reduce1``, ``reduce2``, ``window1``, ..."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return f"{kind}{self._counts[kind]}"


def stores(node: Node) -> tuple[State, ...]:
    """The states of one operator of a differential plan."""
    values = (getattr(node, name) for name in getattr(node, "__dataclass_fields__", {}))
    return (*(value for value in values if isinstance(value, State)), *getattr(node, "states", ()))
