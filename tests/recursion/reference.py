"""What each query of ``queries.py`` must answer, by algorithms on graphs: none of them iterates a query.

NULL as in SQL: an edge that leads to NULL ends there, edges from NULL are taken only as first ones, min and max pass
over NULL, and NULLs make one group, and one row of a set.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from tests.recursion.graphs import Edge, Node

Answer = Counter[tuple[Any, ...]]
Edges = Sequence[Edge]
Sources = Sequence[Node]
Cost = int | None
Out = dict[Node, list[tuple[Node, Cost]]]


def closure(edges: Edges, sources: Sources) -> Answer:
    """From every node a search of its own."""
    out = _out(edges)
    return Counter((a, x) for a in list(out) for x in _reached((b for b, _ in out[a]), out))


def closure_counts(edges: Edges, sources: Sources) -> Answer:
    """How many nodes each one reaches."""
    return Counter(Counter(a for a, _ in closure(edges, sources)).items())


def reach(edges: Edges, sources: Sources) -> Answer:
    """One search from all sources."""
    return Counter((x,) for x in _reached(sources, _out(edges)))


def components(edges: Edges, sources: Sources) -> Answer:
    """Union-find. NULL joins no two components; its label is the least of those that touch it."""
    parents = {node: node for a, b, _ in edges for node in (a, b) if node is not None}
    for a, b, _ in edges:
        if a is not None and b is not None:
            low, high = sorted((_root(parents, a), _root(parents, b)))
            parents[high] = low
    found: Answer = Counter((node, _root(parents, node)) for node in parents)
    beside_null = [(a, b) for a, b, _ in edges if a is None or b is None]
    if beside_null:
        labels = [_root(parents, node) for pair in beside_null for node in pair if node is not None]
        found[(None, min(labels, default=None))] = 1
    return found


def hops(edges: Edges, sources: Sources) -> Answer:
    """Breadth first."""
    return Counter(_hops(edges, sources).items())


def costs(edges: Edges, sources: Sources) -> Answer:
    """Dijkstra."""
    return Counter(_nearest([(s, 0) for s in sources], _out(edges)).items())


def near(edges: Edges, sources: Sources) -> Answer:
    """The same up to a cost of 12."""
    known = [edge for edge in edges if edge[2] is not None]
    return Counter({row: n for row, n in costs(known, sources).items() if row[1] <= 12})


def all_pairs(edges: Edges, sources: Sources) -> Answer:
    """Dijkstra from every node, over one edge or more."""
    out = _out(edges)
    return Counter((a, x, cost) for a in list(out) for x, cost in _nearest(out[a], out).items())


def widest(edges: Edges, sources: Sources) -> Answer:
    """A search for each width, widest first, over the edges that are as wide."""
    found: dict[Node, int] = {}
    for width in (99, *sorted({w for _, _, w in edges if w is not None}, reverse=True)):
        wide = _out([edge for edge in edges if edge[2] is not None and edge[2] >= width])
        for node in _reached(sources, wide):
            found.setdefault(node, width)
    return Counter(found.items())


def same_generation(edges: Edges, sources: Sources) -> Answer:
    """Nodes that one ancestor reaches by walks of one length: its layers of descendants, until one comes again."""
    out = _out(edges)
    found: Answer = Counter()
    for ancestor in [node for node in out if node is not None]:
        layer: frozenset[Node] = frozenset({ancestor})
        seen: set[frozenset[Node]] = set()
        while layer not in seen:
            seen.add(layer)
            layer = frozenset(b for a in layer if a is not None for b, _ in out.get(a, ()))
            found.update(itertools.product(layer, layer))
    return Counter(found.keys())


def parity(edges: Edges, sources: Sources) -> Answer:
    """A search over nodes that are each there twice: as reached by an odd walk, and by an even one."""
    found: Answer = Counter()
    out = _out(edges)
    for start in list(out):
        todo = [(b, "odd") for b, _ in out[start]]
        seen = set(todo)
        while todo:
            node, kind = todo.pop()
            after = "even" if kind == "odd" else "odd"
            new = {(b, after) for b, _ in out.get(node, ()) if node is not None} - seen
            seen |= new
            todo += new
        found.update((kind, start, node) for node, kind in seen)
    return found


def paths(edges: Edges, sources: Sources) -> Answer:
    """Upward paths of at most 6 edges, as often as there are: node by node, those that end in it."""
    upward = _upward(edges)
    ending: dict[int, Answer] = defaultdict(Counter)
    for b in sorted({b for _, b in upward}):
        for a in (a for a, head in upward if head == b):
            ending[b][(a, 1)] += 1
            for (start, length), n in ending[a].items() if a in ending else ():
                ending[b][(start, length + 1)] += n
    return Counter({(a, b, k): n for b, ends in ending.items() for (a, k), n in ends.items() if k <= 6})


def walks(edges: Edges, sources: Sources) -> Answer:
    """How many walks there are of 1 to 4 edges."""
    out = _out(edges)

    @cache
    def onward(node: Node, length: int) -> int:
        if length == 0:
            return 1
        return 0 if node is None else sum(onward(b, length - 1) for b, _ in out.get(node, ()))

    totals = {k: sum(onward(b, k - 1) for _, b, _ in edges) for k in range(1, 5)}
    return Counter((k, n) for k, n in totals.items() if n)


def path_counts(edges: Edges, sources: Sources) -> Answer:
    """How many upward paths lead from a source to each node, of any length: the nodes in order."""
    counts = Counter(sources)
    upward = _upward(edges)
    for b in sorted({b for _, b in upward}):
        counts[b] += sum(counts[a] for a, head in upward if head == b)
    return Counter((x, n) for x, n in counts.items() if n)


def round_trip(edges: Edges, sources: Sources) -> Answer:
    """Breadth first, forwards and backwards."""
    there, back = _hops(edges, sources), _hops([(b, a, w) for a, b, w in edges], sources)
    return Counter((x, n, back[x]) for x, n in there.items() if x is not None and x in back)


def labelled_hops(edges: Edges, sources: Sources) -> Answer:
    """Hops and component of each node that has both."""
    labels: dict[Node, Node] = dict(components(edges, sources).keys())
    return Counter((x, n, labels[x]) for x, n in _hops(edges, sources).items() if x is not None and x in labels)


def big(edges: Edges, sources: Sources) -> Answer:
    """Edges of a weight above 2, each pair once, at its least weight."""
    least: dict[tuple[Node, Node], int] = {}
    for a, b, w in edges:
        if w is not None and w > 2:
            least[a, b] = min(w, least.get((a, b), w))
    return Counter((a, b, w) for (a, b), w in least.items())


def big_costs(edges: Edges, sources: Sources) -> Answer:
    """Dijkstra over those."""
    return costs([(a, b, w) for a, b, w in big(edges, sources)], sources)


def last_source(edges: Edges, sources: Sources) -> Answer:
    """From every source a search that ends before other sources."""
    stops = set(sources) - {None}
    out = _out([edge for edge in edges if edge[1] not in stops])
    return Counter((x, source) for source in set(sources) for x in _reached([source], out))


def spread(edges: Edges, sources: Sources) -> Answer:
    """Nodes that are sources, or that two edges from such nodes lead to: edges are counted down one by one."""
    out = _out(edges)
    has, counts = set(sources), Counter[Node]()
    todo = list(has - {None})
    while todo:
        for b, _ in out.get(todo.pop(), ()):
            counts[b] += 1
            if counts[b] == 2 and b not in has:
                has.add(b)
                todo += [b] if b is not None else []
    return Counter((x,) for x in has)


def _out(edges: Edges) -> Out:
    out: Out = defaultdict(list)
    for a, b, w in edges:
        out[a].append((b, w))
    return dict(out)


def _upward(edges: Edges) -> list[tuple[int, int]]:
    return [(a, b) for a, b, _ in edges if a is not None and b is not None and a < b]


def _root(parents: dict[int, int], node: int) -> int:
    while parents[node] != node:
        node = parents[node]
    return node


def _reached(starts: Iterable[Node], out: Out) -> set[Node]:
    """These nodes and all after them."""
    found = set(starts)
    todo = list(found)
    while todo:
        node = todo.pop()
        new = {b for b, _ in out.get(node, ())} - found if node is not None else set()
        found |= new
        todo += new
    return found


def _hops(edges: Edges, sources: Sources) -> dict[Node, int]:
    out, found = _out(edges), dict.fromkeys(sources, 0)
    todo = deque(found)
    while todo:
        node = todo.popleft()
        for b, _ in out.get(node, ()) if node is not None else ():
            if b not in found:
                found[b] = found[node] + 1
                todo.append(b)
    return found


def _nearest(starts: Sequence[tuple[Node, Cost]], out: Out) -> dict[Node, Cost]:
    """The least cost of each node; None where only edges of an unknown weight lead to it."""
    found: dict[Node, Cost] = {}
    ties = itertools.count()
    todo = [(cost, next(ties), node) for node, cost in starts if cost is not None]
    heapq.heapify(todo)
    while todo:
        cost, _, node = heapq.heappop(todo)
        if node in found:
            continue
        found[node] = cost
        for b, w in out.get(node, ()) if node is not None else ():
            if w is not None:
                heapq.heappush(todo, (cost + w, next(ties), b))
    return {node: found.get(node) for node in _reached((node for node, _ in starts), out)}
