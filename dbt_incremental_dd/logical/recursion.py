"""Recursion: bindings that refer to themselves and to each other, kept at their fixed point.

All bindings start empty; each iteration evaluates them in their order, until nothing changes. A reference to a binding
that stands before has its value of this iteration, any other reference that of the iteration before. It is what
Materialize calls ``WITH MUTUALLY RECURSIVE``, and what iteration in differential dataflow computes (McSherry et al.,
*Differential Dataflow*, CIDR 2013).
"""

from __future__ import annotations

from dataclasses import dataclass

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.logical.node import Id, Node


@dataclass(frozen=True)
class Recur(Node):
    """A binding read inside the recursion. ``outputs`` pairs an id with the binding's column name."""

    binding: str
    outputs: tuple[tuple[Id, str], ...]
    schema: Schema

    @property
    def columns(self) -> tuple[Id, ...]:
        return tuple(id for id, _ in self.outputs)


@dataclass(frozen=True)
class Hoisted(Node):
    """Operand number ``operand`` of the Fixpoint, read inside the recursion: it is the same in all iterations.

    ``node`` is what it stands for; it is no input here, because it is computed outside.
    """

    operand: int
    node: Node

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.node.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        return self


@dataclass(frozen=True)
class Binding:
    """One name of a WITH RECURSIVE: ``plan`` is over Recur and Hoisted, its columns in the order of ``schema``."""

    name: str
    plan: Node
    schema: Schema


@dataclass(frozen=True)
class Fixpoint(Node):
    """Bindings that need each other. It has no columns of its own: a Bound reads one of its bindings.

    ``operands``: what is computed outside of it. ``limit``: iterations after which it is taken to have no end; None:
    the model's setting.
    """

    operands: tuple[Node, ...]
    bindings: tuple[Binding, ...]
    limit: int | None

    @property
    def columns(self) -> tuple[Id, ...]:
        return ()

    def binding(self, name: str) -> Binding:
        """The binding of that name."""
        return next(binding for binding in self.bindings if binding.name == name)


@dataclass(frozen=True)
class Bound(Node):
    """A binding's rows at the fixed point. ``outputs`` pairs an id with the binding's column name."""

    input: Node
    binding: str
    outputs: tuple[tuple[Id, str], ...]

    @property
    def columns(self) -> tuple[Id, ...]:
        return tuple(id for id, _ in self.outputs)
