"""Window functions."""

from __future__ import annotations

from dataclasses import dataclass

from dbt_incremental_dd.logical.expr import Expr, references
from dbt_incremental_dd.logical.node import Id, Node, require


@dataclass(frozen=True)
class Window(Node):
    """Window functions over partitions of equal ``keys``; ``functions`` are whole OVER expressions."""

    input: Node
    keys: tuple[Id, ...]
    functions: tuple[tuple[Id, Expr], ...]

    def __post_init__(self) -> None:
        require(self, set(self.keys), self.input.columns)
        for _, function in self.functions:
            require(self, function.refs, self.input.columns)

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.input.columns + tuple(id for id, _ in self.functions)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return tuple(function for _, function in self.functions)

    def needed_columns(self, wanted: frozenset[Id]) -> tuple[frozenset[Id], ...]:
        functions = self._kept(wanted)
        keys = self.keys if functions else ()
        return (wanted | references(function for _, function in functions) | frozenset(keys),)

    def pruned(self, wanted: frozenset[Id], inputs: tuple[Node, ...]) -> Node:
        functions = self._kept(wanted)
        return Window(inputs[0], self.keys, functions) if functions else inputs[0]

    def _kept(self, wanted: frozenset[Id]) -> tuple[tuple[Id, Expr], ...]:
        return tuple(function for function in self.functions if function[0] in wanted)
