"""Windows that only look back: rows that come before all changed ones of their partition keep their values."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from dbt_incremental_dd.differential.window import called, name_of, order_of
from dbt_incremental_dd.logical.expr import Expr, keyword
from dbt_incremental_dd.logical.nodes import Order

_WITHOUT_FRAME = ("row_number", "rank", "dense_rank")
_OF_ALL_ROWS = ("percent_rank", "cume_dist", "ntile", "lead")


def common_order(functions: Iterable[Expr]) -> Order | None:
    """The first item of the functions' orders, if that is one, and a plain column; None where one of the functions
    looks ahead, or at the whole partition."""
    found: set[Order] = set()
    for function in functions:
        window = function.tree
        if not isinstance(window, exp.Window) or not window.args.get("order") or not _looks_back(window):
            return None
        found.add(order_of(window)[0])
    only = found.pop() if len(found) == 1 else None
    return only if only is not None and only.expr.as_column else None


def _looks_back(window: exp.Expr) -> bool:
    """Whether the value of a row depends on its peers and the rows before it alone."""
    call = called(window)
    name = name_of(call)
    if not name or name in _OF_ALL_ROWS:
        return False
    if name == "lag":
        return len(call.expressions) == 1 or _is_count(call.expressions[1])
    spec = window.args.get("spec")
    if name in _WITHOUT_FRAME or spec is None:
        return True
    is_before = str(spec.args.get("end_side") or "").upper() == "PRECEDING" and _is_count(spec.args.get("end"))
    return is_before or keyword(spec.args.get("end")) == "CURRENT ROW"


def _is_count(value: object) -> bool:
    """Whether it is a number that is not negative, which would turn the direction round."""
    return isinstance(value, exp.Literal) and bool(value.is_int)
