"""Operators are told apart by identity."""

from __future__ import annotations

from dbt_incremental_dd.logical.graph import ByIdentity
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Get


def _name(node: Node) -> str:
    assert isinstance(node, Get)
    return node.collection


def test_an_operator_that_was_dropped_is_not_taken_for_another() -> None:
    found = ByIdentity[str]()
    for number in range(1_000):
        name = f"t{number}"
        assert found.of(Get(name, (("c", "c"),)), _name) == name


def test_equal_operators_are_two() -> None:
    found, made = ByIdentity[int](), iter(range(9))
    one, other = Get("t", (("c", "c"),)), Get("t", (("c", "c"),))
    assert [found.of(node, lambda _: next(made)) for node in (one, other, one)] == [0, 1, 0]
