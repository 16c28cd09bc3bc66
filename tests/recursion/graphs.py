"""Graphs of five kinds as tables of edges, and random edits after which they are still of their kind and size."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

Node = int | None
Edge = tuple[Node, Node, int | None]
Pair = tuple[int, int]

KINDS = ("random", "chain", "cyclic", "star", "clique")


class Edit(NamedTuple):
    """A row that comes into a table (``diff`` 1) or goes from it (-1)."""

    table: str
    row: tuple[Any, ...]
    diff: int


class Graph:
    """A kind of graph with ``size`` nodes: its first edges and sources, and edits that keep what it is like."""

    def __init__(self, kind: str, size: int) -> None:
        self.kind, self.size = kind, size
        self.shape = shape(kind, size)
        self.edges_wanted = 3 * size // 2 if kind == "random" else len(self.shape)

    def first_edges(self, rng: random.Random) -> list[Edge]:
        """The whole shape, or of a random graph as many of its edges as are wanted."""
        pairs = rng.sample(self.shape, self.edges_wanted)
        return [(a, b, _weight(rng)) for a, b in pairs]

    def first_sources(self, rng: random.Random) -> list[tuple[Node]]:
        """The first node and another one."""
        return [(0,), (rng.randrange(1, self.size),)]

    def edit(self, edges: Sequence[Edge], sources: Sequence[tuple[Node]], rng: random.Random) -> Edit:
        """One change to what there is: mostly an edge, now and then a source."""
        if rng.random() < 0.12:
            if _grows(len(sources), 2, rng):
                return Edit("sources", self._new_source(sources, rng), 1)
            return Edit("sources", rng.choice(sources), -1)
        if _grows(len(edges), self.edges_wanted, rng):
            return Edit("edges", self._new_edge(edges, rng), 1)
        return Edit("edges", self._old_edge(edges, rng), -1)

    def _new_source(self, sources: Sequence[tuple[Node]], rng: random.Random) -> tuple[Node]:
        """Any node, one that no edge has, one that is a source already, or NULL."""
        chance = rng.random()
        if chance < 0.2:
            return (None,)
        if chance < 0.35 and sources:
            return rng.choice(sources)
        return (rng.randrange(self.size + 1),)

    def _new_edge(self, edges: Sequence[Edge], rng: random.Random) -> Edge:
        """Mostly one that the shape lacks; or a duplicate, a self loop, one with NULL, or any edge at all."""
        chance, node = rng.random(), rng.randrange(self.size)
        if chance < 0.1 and edges:
            return rng.choice(edges)
        if chance < 0.16:
            return node, node, _weight(rng)
        if chance < 0.25:
            return *rng.choice([(None, node), (node, None), (None, None)]), _weight(rng)
        if chance < 0.32:
            return node, rng.randrange(self.size + 1), _weight(rng)
        have = {(a, b) for a, b, _ in edges}
        lacking = [pair for pair in self.shape if pair not in have]
        return *rng.choice(lacking or self.shape), _weight(rng)

    def _old_edge(self, edges: Sequence[Edge], rng: random.Random) -> Edge:
        """Mostly one that is not of the shape, or is there more than once."""
        counts = Counter((a, b) for a, b, _ in edges)
        odd = [edge for edge in edges if edge[:2] not in self.shape or counts[edge[:2]] > 1]
        return rng.choice(odd if odd and rng.random() < 0.6 else edges)


def shape(kind: str, size: int) -> list[Pair]:
    """The edges that make a graph what it is; of a random one, all that it could have."""
    nodes = range(size)
    match kind:
        case "chain":
            return [(i, i + 1) for i in nodes[:-1]]
        case "cyclic":  # a ring, and a smaller one inside it
            return [*((i, (i + 1) % size) for i in nodes), (size // 2, 0)]
        case "star":  # from the hub to all others, and back from every third
            return [*((0, i) for i in nodes[1:]), *((i, 0) for i in nodes[3::3])]
        case "random" | "clique":
            return [(a, b) for a in nodes for b in nodes if a != b]
    raise ValueError(kind)


def _grows(count: int, wanted: int, rng: random.Random) -> bool:
    """Always where there is nothing, never where there is twice what is wanted, and evenly in between."""
    return rng.random() * 2 * wanted >= count


def _weight(rng: random.Random) -> int | None:
    """From 1 to 9, and seldom NULL."""
    return rng.randint(1, 9) if rng.random() < 0.97 else None
