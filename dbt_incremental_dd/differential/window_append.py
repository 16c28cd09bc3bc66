"""Windows that look back only so far: a large partition whose end grows is extended from its last rows.

The tail of a partition: its last rows in the functions' order, at least one, with the functions' values and the rows'
numbers. Functions of the rows shortly before see those themselves. Running ones go on from the last row's value, which
stands for all rows up to it. Functions that look ahead (lead) change the last rows, too, and nothing before them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dbt_incremental_dd.core.types import DOUBLE, LONG, Decimal, Type
from dbt_incremental_dd.differential.window import depends_on_peers, name_of, order_of
from dbt_incremental_dd.logical.expr import Expr, keyword
from dbt_incremental_dd.logical.node import Id
from dbt_incremental_dd.logical.nodes import Order

NUMBER = "dd_number"
"""A row's number in its partition, from 1; of a new row NULL."""
LAST = "dd_last_number"
"""The number of the partition's last row so far; NULL where there is none."""
COPY = "dd_copy"
"""Tells rows apart that are equal in all columns: it orders them."""
_LONGEST = 1_000
"""Rows of a tail at most."""
_WIDEST = 37
"""Digits of a decimal sum that cannot have become NULL by overflow: they are ten more than its argument's."""

Types = Mapping[Id, Type]
"""Types of columns, as in a schema."""


@dataclass(frozen=True)
class WindowAppend:
    """How new rows that come after all others of their partition get their values.

    ``order``: the longest of the functions' orders; the others are the beginning of it, the shortest of ``peers``
    items. ``functions`` are over the tail and the new rows, in which columns are the input's, ``was(id)`` (a tail's
    stored value), ``NUMBER``, ``LAST`` and ``COPY``; of the tail's own rows only those in ``revised`` are right, and
    only at the last ``ahead`` rows. ``by_rows``: equal rows can have different values.
    """

    order: tuple[Order, ...]
    peers: int
    by_rows: bool
    functions: tuple[tuple[Id, Expr], ...]
    revised: tuple[Id, ...]
    back: int
    ahead: int

    @property
    def rows(self) -> int:
        """Rows of a tail."""
        return max(1, self.back + self.ahead)


@dataclass(frozen=True)
class _Extended:
    sql: str
    back: int = 0
    ahead: int = 0


@dataclass(frozen=True)
class _Function:
    """A window function of that type: its call, below IGNORE NULLS and FILTER, whose condition is ``condition``."""

    id: Id
    type: Type
    window: exp.Expr
    call: exp.Expr
    ignores_nulls: bool
    condition: exp.Expr | None

    @property
    def name(self) -> str:
        """The call's name, in small letters; empty where it is not an ordinary one."""
        return name_of(self.call)

    @property
    def argument(self) -> str:
        """The call's first argument."""
        return Expr.of(self.call.expressions[0]).sql

    def from_last(self, argument: str) -> str:
        """The argument, in whose place the last row has the value so far, and the rows before it have none."""
        return f"CASE WHEN {NUMBER} IS NULL THEN {argument} WHEN {NUMBER} = {LAST} THEN {was(self.id)} END"

    def over(self, name: str, argument: str) -> str:
        """The window with that call in it."""
        window = self.window.copy()
        window.set("this", Expr(f"{name}({argument})").tree.copy())
        return Expr.of(window).sql

    def with_argument(self, argument: str) -> str | None:
        """The window with another first argument; None where not all rows count."""
        if self.condition is not None:
            return None
        self.call.expressions[0].replace(Expr(argument).tree.copy())
        return Expr.of(self.window).sql


def was(id: Id) -> Id:
    """The column of a function's stored values."""
    return f"{id}_was"


def plan_growth(functions: Sequence[tuple[Id, Expr]], types: Types) -> WindowAppend | None:
    """None where a function needs more of its partition than a tail, or their orders are not one."""
    trees = [(id, expr.tree.copy()) for id, expr in functions]
    if not all(isinstance(tree, exp.Window) and tree.args.get("order") for _, tree in trees):
        return None
    orders = sorted((order_of(tree) for _, tree in trees), key=len)
    if any(orders[-1][: len(order)] != order for order in orders):
        return None
    by_rows = [tree for _, tree in trees if isinstance(tree, exp.Window) and depends_on_peers(tree)]
    for tree in by_rows:
        tree.args["order"].append("expressions", exp.Ordered(this=exp.column(COPY), nulls_first=True))
    found = [(id, _extended(_parsed(id, tree, types[id]))) for id, tree in trees]
    extended = [(id, how) for id, how in found if how is not None]
    back, ahead = (max((getattr(how, side) for _, how in extended), default=0) for side in ("back", "ahead"))
    if len(extended) < len(found) or back + ahead > _LONGEST:
        return None
    revised = tuple(id for id, how in extended if how.ahead)
    new = tuple((id, Expr(how.sql)) for id, how in extended)
    return WindowAppend(
        orders[-1], len(orders[0]), bool(by_rows), functions=new, revised=revised, back=back, ahead=ahead
    )


def _extended(of: _Function) -> _Extended | None:
    """The function over the tail and the new rows; None where they do not tell its value."""
    if of.name in ("lag", "lead"):
        return None if of.ignores_nulls else _shifted(of)
    if of.name in _COUNTED:
        return _Extended(_numbered(of))
    spec: exp.Expr | None = of.window.args.get("spec")
    if _is_running(spec):
        rule = _RUNNING.get(of.name)
        sql = rule(of) if rule is not None else None
        return None if sql is None else _Extended(sql)
    return None if spec is None else _moving(of.window, spec)


def _parsed(id: Id, window: exp.Expr, type: Type) -> _Function:
    call, ignores_nulls, condition = window.this, False, None
    while isinstance(call, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        ignores_nulls = ignores_nulls or isinstance(call, exp.IgnoreNulls)
        condition = call.expression.this if isinstance(call, exp.Filter) else condition
        call = call.this
    return _Function(id, type, window, call=call, ignores_nulls=ignores_nulls, condition=condition)


def _is_running(spec: exp.Expr | None) -> bool:
    """Whether frames reach from the partition's first row to the row itself, or its last peer."""
    if spec is None:
        return True
    ends = (keyword(spec.args.get("start")), keyword(spec.args.get("end")))
    return ends == ("UNBOUNDED", "CURRENT ROW")


def _moving(window: exp.Expr, spec: exp.Expr) -> _Extended | None:
    """A frame of so many rows around each."""
    start, end = _offset(spec, "start"), _offset(spec, "end")
    if str(spec.args.get("kind") or "").upper() != "ROWS" or start is None or end is None:
        return None
    return _Extended(Expr.of(window).sql, max(0, -start), max(0, end))


def _offset(spec: exp.Expr, side: str) -> int | None:
    """Rows from the row itself to that end of its frame; None where that is not a number."""
    value = spec.args.get(side)
    if isinstance(value, str):
        return 0 if value.upper() == "CURRENT ROW" else None
    if not isinstance(value, exp.Literal) or not value.is_int:
        return None
    preceding = str(spec.args.get(f"{side}_side") or "").upper() == "PRECEDING"
    return -int(value.this) if preceding else int(value.this)


def _shifted(of: _Function) -> _Extended | None:
    distance = 1
    if len(of.call.expressions) > 1:
        value = of.call.expressions[1]
        if not isinstance(value, exp.Literal) or not value.is_int:
            return None
        distance = int(value.this)
    sql = Expr.of(of.window).sql
    return _Extended(sql, back=distance) if of.name == "lag" else _Extended(sql, ahead=distance)


def _numbered(of: _Function) -> str:
    """The number among the new rows, added to what the last row had."""
    partition = [*(of.window.args.get("partition_by") or ()), Expr(f"{NUMBER} IS NULL").tree.copy()]
    keys = ", ".join(Expr.of(key).sql for key in partition[:-1]) or "TRUE"
    window = of.window.copy()
    window.set("partition_by", partition)
    before = LAST if of.name != "dense_rank" else f"MAX({was(of.id)}) OVER (PARTITION BY {keys})"
    return f"CAST({Expr.of(window).sql} + COALESCE({before}, 0) AS INT)"


def _combined(of: _Function) -> str | None:
    """Of an aggregate whose value for some rows can stand for them."""
    if len(of.call.expressions) != 1:
        return None
    return of.over(of.name, of.from_last(_filtered(of.argument, of.condition)))


def _sum(of: _Function) -> str | None:
    if of.type in (LONG, DOUBLE):
        return _combined(of)
    if not isinstance(of.type, Decimal) or of.type.precision > _WIDEST:
        return None
    sql = _combined(of)
    return None if sql is None else f"CAST({sql} AS {of.type})"


def _count(of: _Function) -> str | None:
    if any(isinstance(argument, exp.Distinct) for argument in of.call.expressions):
        return None
    tests = [f"({Expr.of(a).sql}) IS NOT NULL" for a in of.call.expressions if not isinstance(a, exp.Star)]
    tests += [f"({Expr.of(of.condition).sql})"] if of.condition is not None else []
    return of.over("sum", of.from_last(f"CASE WHEN {' AND '.join(tests) or 'TRUE'} THEN 1L ELSE 0L END"))


def _first(of: _Function) -> str | None:
    """All rows of the tail have the partition's first value already."""
    return of.with_argument(f"CASE WHEN {NUMBER} IS NULL THEN {of.argument} ELSE {was(of.id)} END")


def _latest(of: _Function) -> str | None:
    """The latest value so far is the last row's."""
    return of.with_argument(of.from_last(of.argument))


def _filtered(argument: str, condition: exp.Expr | None) -> str:
    return argument if condition is None else f"CASE WHEN {Expr.of(condition).sql} THEN {argument} END"


_COUNTED = ("row_number", "rank", "dense_rank")
_RUNNING: dict[str, Callable[[_Function], str | None]] = {
    "sum": _sum,
    "count": _count,
    **dict.fromkeys(("min", "max", "bool_and", "bool_or", "every", "some", "any"), _combined),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), _combined),
    **dict.fromkeys(("first", "first_value"), _first),
    **dict.fromkeys(("last", "last_value"), _latest),
}
