"""Reports over one star: subtotals, pivots, shares, tiles of single numbers, and filters by the first of a ranking."""

from __future__ import annotations

from benchmarks.generated.draw import Draw
from benchmarks.generated.facts import ORDERS, SALES, STOCK
from benchmarks.generated.sql import Term, names, nested, select, with_


def rollup(draw: Draw) -> str:
    """Subtotals at several levels, each row with its place in its level."""
    fact = draw.one((SALES, SALES, ORDERS, STOCK))
    keys = draw.some(fact.dimensions, 2, 3)
    measures = fact.measures(draw, 2, 4)
    first, by = measures[0], ", ".join(key.sql for key in keys)
    grouping = draw.one((f"ROLLUP ({by})", f"CUBE ({by})", _grouping_sets(draw, keys)))
    having = "count(*) > 1" if draw.maybe(0.3) else ""
    report = fact.select(
        [*keys, Term("level", "grouping_id()"), *measures], fact.where(draw, 1, 3), group=grouping, having=having
    )
    shown = [f"coalesce(CAST({key.name} AS STRING), 'all') AS {key.name}" for key in keys]
    ranked = select(
        [
            *shown,
            "level",
            *(m.name for m in measures),
            f"rank() OVER (PARTITION BY level ORDER BY {first.name} DESC) AS place",
        ],
        "report",
    )
    where = [f"place <= {draw.number(5, 30)}"] if draw.maybe() else []
    order = draw.one(("level DESC, place", f"{first.name} DESC, level"))
    body = select(["*"], "ranked", where=where, order=f"{order}, {names(keys)}", limit=draw.limit())
    return with_({"report": report, "ranked": ranked}, body)


def _grouping_sets(draw: Draw, keys: list[Term]) -> str:
    sets = [f"({', '.join(key.sql for key in keys)})", *(f"({key.sql})" for key in keys)]
    return f"GROUPING SETS ({', '.join([*sets, '()'] if draw.maybe() else sets)})"


def pivot(draw: Draw) -> str:
    """A column for each of several values, the ratio of two of them, and rows above the average."""
    fact = draw.one((SALES, ORDERS))
    across, values = draw.one(fact.pivots)
    keys = draw.some([one for one in fact.dimensions if one.sql != across.sql], 1, 2)
    amount = draw.one(fact.amounts)
    cells = [_cell(draw, across, value, amount, i) for i, value in enumerate(draw.some(values, 3, 8))]
    whole = Term("whole", f"sum({amount.sql})", amount.needs)
    counted = Term("large", f"count(CASE WHEN {amount.sql} > {draw.number(1, 9)}00 THEN 1 END)", amount.needs)
    table = fact.totals(draw, keys, [*cells, whole, counted], fact.where(draw, 0, 3), having="count(*) > 2")
    one, two = cells[:2]
    ratio = f"round(coalesce({one.name}, 0) / nullif({two.name}, 0), 4) AS ratio"
    above = f"whole > (SELECT {draw.one(('0.5', '0.8', '1'))} * avg(whole) FROM cells)"
    order = f"{draw.one(('whole', 'large'))} DESC, {names(keys)}"
    body = select(
        [*(term.name for term in (*keys, *cells)), ratio, "whole", "large"],
        "cells",
        where=[above],
        order=order,
        limit=draw.limit(),
    )
    return with_({"cells": table}, body)


def _cell(draw: Draw, across: Term, value: str, amount: Term, number: int) -> Term:
    """A measure of the rows with the value."""
    call = draw.one(
        (
            f"sum(CASE WHEN {across.sql} = {value} THEN {amount.sql} END)",
            f"sum(CASE WHEN {across.sql} = {value} THEN {amount.sql} ELSE 0 END)",
            f"sum({amount.sql}) FILTER (WHERE {across.sql} = {value})",
            f"avg(CASE {across.sql} WHEN {value} THEN {amount.sql} END)",
            f"count_if({across.sql} = {value})",
        )
    )
    return Term(f"cell_{number + 1}", call, (*across.needs, *amount.needs))


def shares(draw: Draw) -> str:
    """Each row's share of its group and of everything, and its rank; windows over aggregates."""
    fact = draw.one((SALES, ORDERS, STOCK))
    outer, inner = draw.some(fact.dimensions, 2, 2)
    measure = fact.measures(draw, 1, 1)[0]
    windows = [
        Term("share_of_group", f"100 * {measure.sql} / sum({measure.sql}) OVER (PARTITION BY {outer.sql})"),
        Term("share_of_all", f"round(100 * {measure.sql} / sum({measure.sql}) OVER (), 3)"),
        Term("place", f"rank() OVER (PARTITION BY {outer.sql} ORDER BY {measure.sql} DESC)"),
        Term("rows_of_group", f"sum(count(*)) OVER (PARTITION BY {outer.sql})"),
        Term("best_of_group", f"max({measure.sql}) OVER (PARTITION BY {outer.sql})"),
    ]
    measures = [measure, *draw.some(windows[:2], 1, 2), *draw.some(windows[3:], 0, 2), windows[2]]
    having = f"count(*) > {draw.number(1, 5)}" if draw.maybe() else ""
    totals = fact.totals(draw, [outer, inner], measures, fact.where(draw, 1, 3), having)
    where = [f"place <= {draw.number(3, 8)}"]
    order = draw.one((f"{outer.name}, place, {inner.name}", f"{measure.name} DESC, {outer.name}, {inner.name}"))
    return select(["*"], f"{nested(totals)} x", where=where, order=order, limit=draw.limit())


_BANDS = {
    "tpch.lineitem": ("l_quantity", 10, ("l_extendedprice", "l_discount", "l_extendedprice * l_tax")),
    "tpch.orders": ("o_totalprice", 60_000, ("o_totalprice", "length(o_comment)", "year(o_orderdate)")),
    "tpch.partsupp": ("ps_availqty", 2_000, ("ps_supplycost", "ps_supplycost * ps_availqty")),
}


def subqueries(draw: Draw) -> str:
    """One row of tiles: up to 15 scalar subqueries over one table, a few of them for each band of a column."""
    table = draw.one(tuple(_BANDS))
    column, width, amounts = _BANDS[table]
    bands = [f"{column} BETWEEN {i * width + 1} AND {(i + 1) * width}" for i in range(5)]
    if draw.maybe(0.4):
        blocks = [_block(table, band, draw.one(amounts), i) for i, band in enumerate(bands)]
        return select(["*"], " CROSS JOIN ".join(blocks))
    tiles = []
    for i, band in enumerate(bands):
        large, small = draw.some(amounts, 2, 2)
        few = f"(SELECT count(*) FROM {table} WHERE {band}) > {draw.number(1, 20)}000"
        yes, no = (f"(SELECT {draw.one(('avg', 'max'))}({one}) FROM {table} WHERE {band})" for one in (large, small))
        tiles.append(f"CASE WHEN {few}\n    THEN {yes}\n    ELSE {no} END AS tile_{i + 1}")
    return select(tiles, "tpch.region", where=["r_regionkey = 0"])


def _block(table: str, band: str, amount: str, number: int) -> str:
    columns = [
        f"avg({amount}) AS mean_{number + 1}",
        f"count({amount}) AS count_{number + 1}",
        f"count(DISTINCT {amount}) AS distinct_{number + 1}",
    ]
    return f"{nested(select(columns, table, where=[band]))} b{number + 1}"


def top_filter(draw: Draw) -> str:
    """A table over a nested query, kept to the first of a ranking over the same query, as dashboards filter."""
    fact = draw.one((SALES, ORDERS, STOCK))
    ranked, *others = draw.some(fact.dimensions, 2, 3)
    amount, *more = draw.some(fact.amounts, 2, 3)
    base = fact.select([ranked, *others, amount, *more], fact.where(draw, 1, 3))
    first = select(
        [ranked.name, f"sum({amount.name}) AS ranking"],
        f"{nested(select(['*'], 'base'))} b0",
        group="1",
        order=f"2 DESC, {ranked.name}",
        limit=draw.number(3, 8),
    )
    measures = [f"sum(b.{amount.name}) AS {amount.name}", *(f"avg(b.{one.name}) AS mean_{one.name}" for one in more)]
    keys = [ranked, *others]
    source = f"base b\n  JOIN {nested(first)} t ON b.{ranked.name} <=> t.{ranked.name}"
    filters = [f"b.{ranked.name} IS NOT NULL"] if draw.maybe() else []
    columns = [*(f"b.{key.name} AS {key.name}" for key in keys), *measures, "max(t.ranking) AS ranking"]
    body = select(
        columns,
        source,
        where=filters,
        group=names(keys, "b"),
        order=f"ranking DESC, {names(keys)}",
        limit=draw.limit(),
    )
    return with_({"base": base}, body)
