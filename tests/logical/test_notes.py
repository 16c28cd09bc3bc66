"""What is written beside a tree's nodes stays there; a copy, which may be changed, has none of it."""

from __future__ import annotations

from sqlglot import exp

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.notes import noted


def test_it_is_found_out_once() -> None:
    asked: list[str] = []

    def text(node: exp.Expr) -> str:
        asked.append(node.sql())
        return node.sql()

    tree = Expr("c1 + c2").tree.copy()
    assert [noted(tree, text), noted(tree, text)] == ["c1 + c2"] * 2
    assert asked == ["c1 + c2"]
    tree.this.replace(exp.column("c3"))
    copy = tree.copy()
    assert noted(copy, text) == "c3 + c2"


def test_a_substituted_expression_is_the_one_that_its_text_means() -> None:
    """Its tree is kept, not parsed again."""
    values = {"c1": Expr("a + b"), "c2": Expr("c9"), "c3": Expr("CASE WHEN c1 THEN -2 END"), "s": Expr("c7")}
    for sql in ("c1", "c2", "c1 * c2", "-c3", "f(c1, x -> x + c1)", "c1 IS NULL AND NOT c2", "s.f", "s.f + c1",
                "c2 BETWEEN c1 AND c3", "c1[c2]", "CAST(c3 AS DECIMAL(3,1))", "sum(c1) FILTER (WHERE c2 > c3)"):  # fmt: skip
        made = Expr(sql).substitute(values)
        assert repr(made.tree) == repr(Expr(made.sql).tree), sql
