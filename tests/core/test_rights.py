"""Grants, and the conditions of their rows."""

from __future__ import annotations

from dbt_incremental_dd.core.rights import EVERYTHING, Grant, Rights


def test_grants_add_up_and_conditions_of_a_grant_all_apply() -> None:
    rights = Rights((Grant(("a.*",), (("a.x", "p"), ("*", "q"))), Grant(("a.y",))))
    assert rights.condition("a.y") is None and rights.condition("b.x") == "false"
    assert rights.condition("a.x") == "(\n(\np\n) AND (\nq\n)\n)" and not rights.may_read("b.x")
    assert EVERYTHING.condition("a.y") is None and not Rights().may_read("a.y")
    assert Rights((Grant(("a.?",)),)).may_read("A.X") and not Rights((Grant(("a.?",)),)).may_read("a.xy")


def test_what_tells_of_runs_is_granted_by_name_alone() -> None:
    """It has the names, SQL and errors of all collections."""
    assert not Rights((Grant(("*",), (("a.*", "p"),)),)).may_read("dd_runs")
    assert Rights((Grant(("a.*", "dd_run*")),)).may_read("dd_runs") and EVERYTHING.may_read("dd_runs")
    assert EVERYTHING.condition("dd_runs") is None and Rights((Grant(("*",)), Grant())).condition("dd_runs") == "false"
