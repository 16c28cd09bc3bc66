"""An operator of the relational algebra.

It is a multiset of rows over ``columns``, ids that are unique in the plan. Operators are immutable and refuse to be
built over columns that their inputs do not have. Equal subplans may be one operator that several read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from dbt_incremental_dd.logical.expr import Expr, references

Id = str


@dataclass(frozen=True)
class Node:
    """Base of all operators. What passes and recursions ask of an operator it says itself; the defaults are safe."""

    by_rows: ClassVar[bool] = False
    """Whether it looks at single rows: its delta is what it makes of its inputs' deltas."""
    is_linear: ClassVar[bool] = False
    """Whether it is a sum over the rows of each input, the others being what they are."""
    passes_filters: ClassVar[bool] = False
    """Whether a filter of its rows may as well stand below its input."""

    passes_columns: ClassVar[bool] = False
    """Whether columns of its inputs that it does not read itself only pass through it."""

    @property
    def columns(self) -> tuple[Id, ...]:
        """Ids of the output's columns, in order."""
        raise TypeError(f"{type(self).__name__} must say its columns")

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The operators that it reads."""
        found: list[Node] = []
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Node):
                found.append(value)
            elif isinstance(value, tuple):
                found += [item for item in value if isinstance(item, Node)]
        return tuple(found)

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        """The same operator over other inputs, given in the order of ``inputs``; itself where they are the same."""
        if all(new is own for new, own in zip(inputs, self.inputs, strict=True)):
            return self
        rest = iter(inputs)
        changed: dict[str, object] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Node):
                changed[field.name] = next(rest)
            elif isinstance(value, tuple) and any(isinstance(item, Node) for item in value):
                changed[field.name] = tuple(next(rest) for _ in value)
        return replace(self, **changed) if changed else self

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """Those that it evaluates over its inputs' columns."""
        return ()

    def needed_columns(self, wanted: frozenset[Id]) -> tuple[frozenset[Id], ...]:
        """For each input the columns that it must have where these of the output are wanted, perhaps among others. By
        default all of them: the operator is over whole rows."""
        if self.passes_columns:
            return (wanted | references(self.expressions),) * len(self.inputs)
        return tuple(frozenset(child.columns) for child in self.inputs)

    def pruned(self, wanted: frozenset[Id], inputs: tuple[Node, ...]) -> Node:
        """The same over inputs that have its ``needed_columns``, perhaps without columns that are not wanted. Where all
        are wanted it has all of them, in their order."""
        return self.with_inputs(inputs)

    @property
    def settings(self) -> tuple[tuple[str, object], ...]:
        """Names and values of the fields that are no operators."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return tuple((name, value) for name, value in values if not _holds_nodes(value))

    def walk(self) -> Iterator[Node]:
        """This operator and all below it, parents first."""
        yield self
        for node in self.inputs:
            yield from node.walk()


def _holds_nodes(value: object) -> bool:
    return isinstance(value, Node) or (isinstance(value, tuple) and any(isinstance(item, Node) for item in value))


def require(node: Node, needed: frozenset[Id] | set[Id], present: tuple[Id, ...]) -> None:
    """Raises ValueError for ids that the input does not have."""
    missing = needed - set(present)
    if missing:
        raise ValueError(f"{type(node).__name__} reads {sorted(missing)}, but its input has {list(present)}")
