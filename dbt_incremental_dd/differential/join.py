"""Inner joins as delta queries: one path for each input, which starts from that input's delta and probes the *stored*
others by key. No intermediate result is stored.

The law (bilinearity): the delta of ``R1 x ... x Rk`` is the sum over i of
``R1' x ... x R(i-1)' x dRi x R(i+1) x ... x Rk``, with R' the contents at the new time and R those at the old.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dbt_incremental_dd.differential.fanout import Statistics, fanout, size
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node


@dataclass(frozen=True)
class Equality:
    """``left = right``: ``left`` over what a path has so far, ``right`` over the input that it probes.

    ``null_safe`` equality (``<=>``) also matches NULL with NULL.
    """

    left: Expr
    right: Expr
    null_safe: bool = False


@dataclass(frozen=True)
class PathStep:
    """Probe input number ``operand`` by the equalities, then keep the rows for which ``residual`` is true."""

    operand: int
    equalities: tuple[Equality, ...]
    residual: tuple[Expr, ...]


@dataclass(frozen=True)
class Path:
    """From the delta of input ``start`` (filtered by ``first``) through all other inputs.

    ``cost``: about how many rows it makes from all of its start, where anything is known of the inputs.
    """

    start: int
    first: tuple[Expr, ...]
    steps: tuple[PathStep, ...]
    cost: float = 0.0


@dataclass(frozen=True)
class DeltaJoin(Node):
    """A k-way inner join."""

    operands: tuple[Node, ...]
    on: tuple[Expr, ...]

    @property
    def columns(self) -> tuple[Id, ...]:
        return tuple(id for operand in self.operands for id in operand.columns)


def paths(node: DeltaJoin, statistics: Statistics | None = None) -> tuple[Path, ...]:
    """A path from each input, each extended by the input of which a key has the fewest rows, cross products last.

    Without ``statistics`` by the input with the most equalities.
    """
    conjuncts = tuple(conjunct for predicate in node.on for conjunct in predicate.conjuncts())
    links = _links(node.operands, conjuncts)
    return tuple(_path(start, node.operands, conjuncts, links, statistics) for start in range(len(node.operands)))


def _links(operands: tuple[Node, ...], conjuncts: tuple[Expr, ...]) -> list[dict[int, list[Expr]]]:
    """For each input, the conjuncts that it shares with each of the others."""
    owner = {id: i for i, operand in enumerate(operands) for id in operand.columns}
    links: list[dict[int, list[Expr]]] = [{} for _ in operands]
    for conjunct in conjuncts:
        read = {owner[id] for id in conjunct.refs if id in owner}
        for i in read:
            for other in read - {i}:
                links[i].setdefault(other, []).append(conjunct)
    return links


def _path(
    start: int,
    operands: tuple[Node, ...],
    conjuncts: tuple[Expr, ...],
    links: list[dict[int, list[Expr]]],
    statistics: Statistics | None,
) -> Path:
    bound = set(operands[start].columns)
    first = tuple(c for c in conjuncts if c.refs <= bound)
    rest = [c for c in conjuncts if c not in first]
    remaining = [i for i in range(len(operands)) if i != start]
    steps = []
    rows = size(operands[start], statistics) if statistics else 0.0
    cost = rows
    taken, ranks = start, {i: _rank(operands[i], [], statistics) for i in remaining}
    while remaining:
        for i in links[taken]:  # only these can have gained an equality
            if i in ranks:
                shared = {c: None for others in links[i].values() for c in others}
                ranks[i] = _rank(operands[i], _usable(shared, bound, operands[i]), statistics)
        best = min(remaining, key=lambda i: (ranks[i], i))
        rows *= ranks[best][1]
        cost += rows
        added = set(operands[best].columns)
        ready = [c for c in rest if c.refs <= bound | added]
        equalities = {c: e for c in ready if (e := equality(c, frozenset(bound), frozenset(added)))}
        residual = tuple(c for c in ready if c not in equalities)
        steps.append(PathStep(best, tuple(equalities.values()), residual))
        rest = [c for c in rest if c not in ready]
        bound |= added
        remaining.remove(best)
        taken = best
    return Path(start, first, tuple(steps), cost)


def _rank(operand: Node, equalities: list[Equality], statistics: Statistics | None) -> tuple[bool, float, int]:
    """What is probed first: not a cross product, with few rows for a probe, by many equalities."""
    columns = frozenset(e.right.as_column for e in equalities if e.right.as_column)
    return not equalities, fanout(operand, columns, statistics) if statistics else 0.0, -len(equalities)


def _usable(conjuncts: Iterable[Expr], bound: set[Id], operand: Node) -> list[Equality]:
    """The equalities between what is bound and the input."""
    found = (equality(c, frozenset(bound), frozenset(operand.columns)) for c in conjuncts)
    return [e for e in found if e]


def equality(conjunct: Expr, left: frozenset[Id], right: frozenset[Id]) -> Equality | None:
    """The conjunct as an equality between the two sides' columns, None where it is not one."""
    sides = conjunct.equality_sides()
    if sides is None:
        return None
    a, b, null_safe = sides
    if a.refs and b.refs:
        if a.refs <= left and b.refs <= right:
            return Equality(a, b, null_safe)
        if b.refs <= left and a.refs <= right:
            return Equality(b, a, null_safe)
    return None


def split_condition(
    on: tuple[Expr, ...], left: frozenset[Id], right: frozenset[Id]
) -> tuple[tuple[Equality, ...], tuple[Expr, ...]]:
    """The equalities of a two-sided condition, and the rest of it."""
    equalities, residual = [], []
    for predicate in on:
        for conjunct in predicate.conjuncts():
            found = equality(conjunct, left, right)
            if found:
                equalities.append(found)
            else:
                residual.append(conjunct)
    return tuple(equalities), tuple(residual)
