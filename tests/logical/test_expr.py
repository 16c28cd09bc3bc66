"""Expressions taken apart."""

from __future__ import annotations

import pytest

from dbt_incremental_dd.logical.expr import Expr


@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        ("a = 1 AND (b OR c)", ["a = 1", "b OR c"]),
        ("a = 1 OR b = 2", ["a = 1 OR b = 2"]),
        ("(a = b AND c > 1) OR (a = b AND d > 2)", ["a = b", "((c > 1)) OR ((d > 2))"]),
        ("(a AND b) OR (a AND c) OR (d AND e AND a)", ["a", "((b)) OR ((c)) OR ((d) AND (e))"]),
        ("(a = b AND c > 1) OR a = b", ["a = b"]),
        ("((a AND b) OR (a AND c)) AND d", ["a", "((b)) OR ((c))", "d"]),
        ("a OR (b AND (c OR d))", ["a OR (b AND (c OR d))"]),
    ],
)
def test_conjuncts(sql: str, parts: list[str]) -> None:
    assert [part.sql for part in Expr(sql).conjuncts()] == parts
