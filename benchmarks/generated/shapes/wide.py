"""Queries of many joins: sales compared across years, stocks before and after a day, baskets, distributions."""

from __future__ import annotations

from benchmarks.generated.draw import Draw
from benchmarks.generated.facts import ORDERS, REVENUE, SALES
from benchmarks.generated.sql import Term, alike, names, nested, select, with_
from benchmarks.generated.words import MODES


def resale(draw: Draw) -> str:
    """Ten tables joined, grouped, and joined with themselves a year later: up to twenty joins."""
    keys = [
        *draw.one(SALES.entities[2:]),
        *draw.some(
            [one for one in SALES.dimensions if one.name.endswith(("nation", "region", "class", "metal"))], 0, 2
        ),
    ]
    date = draw.one(SALES.dates)
    period = Term("period", f"year({date.sql})", date.needs)
    measures = [
        Term("deals", "count(*)"),
        Term("revenue", f"sum({REVENUE.sql})"),
        Term("cost", "sum(ps_supplycost * l_quantity)", ("partsupp",)),
        Term("balance", "max(c_acctbal + s_acctbal)", ("customer", "supplier")),
        Term("regions", "count(DISTINCT cr.r_name, sr.r_name)", ("cr", "sr")),
    ]
    well_stocked = select(
        ["ps_partkey"],
        "tpch.partsupp",
        group="ps_partkey",
        having=f"sum(ps_availqty) > {draw.number(8, 20)} * avg(ps_supplycost)",
    )
    stocked = Term("", "l_partkey IN (SELECT ps_partkey FROM stocked)")
    conditions = [
        stocked,
        *SALES.where(draw, 1, 2, dated=False),
        Term("", "cn.n_name <> sn.n_name", ("cn", "sn", "part")),
    ]
    sales = SALES.totals(draw, [*keys, period], measures, conditions)
    year = draw.year(1)
    columns = [*(f"a.{key.name} AS {key.name}" for key in keys), "a.period AS period"]
    columns += [f"{side}.{one.name} AS {one.name}_{side}" for one in measures[:4] for side in ("a", "b")]
    columns += ["a.regions + b.regions AS regions", "b.revenue - b.cost - (a.revenue - a.cost) AS gain"]
    where = [alike(keys, "a", "b"), f"a.period = {year}", f"b.period = {year + 1}", "b.deals <= a.deals"]
    body = select(columns, "sales a, sales b", where=where, order=f"gain DESC, {names(keys)}", limit=draw.limit())
    return with_({"stocked": well_stocked, "sales": sales}, body)


def stock_turn(draw: Draw) -> str:
    """What left the stock before and after a day, by part, supplier or nation, where the ratio changed."""
    day, span = f"DATE '{draw.year()}-{draw.number(3, 9):02d}-15'", draw.number(3, 18) * 30
    keys = [draw.one(SALES.dimensions[-6:])] if draw.maybe(0.6) else [*draw.one(SALES.entities[2:])]
    measures = [
        Term("before", f"sum(CASE WHEN l_shipdate < {day} THEN l_quantity ELSE 0 END)"),
        Term("after", f"sum(CASE WHEN l_shipdate >= {day} THEN l_quantity ELSE 0 END)"),
        Term("in_stock", "max(ps_availqty)", ("partsupp",)),
        Term("retail", "avg(p_retailprice)", ("part",)),
    ]
    within = Term("", f"l_shipdate BETWEEN {day} - INTERVAL {span} DAYS AND {day} + INTERVAL {span} DAYS")
    moved = SALES.totals(draw, keys, measures, [within, *SALES.where(draw, 0, 2, dated=False)])
    ratio = "CASE WHEN before > 0 THEN after / before END"
    typical = draw.one(("percentile(turn, 0.5)", "median(turn)", "avg(turn)", "percentile(turn, 0.75)"))
    turns = select([names(keys), "before", "after", "in_stock", "retail", f"{ratio} AS turn"], "moved")
    level = select([f"{typical} AS typical", "count(turn) AS turned", "max(in_stock) AS most"], "turns")
    columns = [f"t.{key.name} AS {key.name}" for key in keys]
    columns += ["before", "after", "in_stock", "retail", "turn", "typical", "in_stock * 100 / most AS level_of_stock"]
    where = [draw.one(("turn > typical", "turn BETWEEN 0.666667 AND 1.5", "coalesce(turn, 0) < typical"))]
    order = f"turn DESC, {names(keys)}"
    body = select(columns, "turns t CROSS JOIN levels", where=where, order=order, limit=draw.limit())
    return with_({"moved": moved, "turns": turns, "levels": level}, body)


def baskets(draw: Draw) -> str:
    """What is bought together: lines of one order joined with each other."""
    key = draw.one([one for one in SALES.dimensions if one.needs in (("part",), ("sn",), ())])
    amount = draw.one(SALES.amounts[1:3])
    base = SALES.select(
        [Term("order_key", "l_orderkey"), Term("line", "l_linenumber"), key, amount], SALES.where(draw, 2, 3)
    )
    grouped = draw.maybe()
    if grouped:
        base = select(
            ["order_key", key.name, f"sum({amount.name}) AS {amount.name}"],
            f"{nested(base)} x",
            group=f"order_key, {key.name}",
        )
    pairs = select(
        [
            f"a.{key.name} AS one",
            f"b.{key.name} AS other",
            "count(DISTINCT a.order_key) AS together",
            f"sum(a.{amount.name} + b.{amount.name}) AS {amount.name}",
        ],
        f"bought a\n  JOIN bought b ON b.order_key = a.order_key AND b.{key.name} > a.{key.name}",
        group="1, 2",
    )
    single = select([key.name, "count(DISTINCT order_key) AS orders"], "bought", group=key.name)
    columns = ["one", "other", "together", f"p.{amount.name} AS {amount.name}"]
    columns += (
        ["round(together / least(s.orders, t.orders), 4) AS confidence"] if draw.maybe() else ["s.orders AS orders"]
    )
    source = f"pairs p\n  JOIN singles s ON s.{key.name} = p.one\n  JOIN singles t ON t.{key.name} = p.other"
    where = [f"together >= {draw.number(1, 3)}"]
    body = select(columns, source, where=where, order="together DESC, one, other", limit=draw.limit())
    return with_({"bought": base, "pairs": pairs, "singles": single}, body)


def distribution(draw: Draw) -> str:
    """How many have how many, or by which quantile: aggregates over aggregates."""
    if draw.maybe(0.3):
        return _counts_of_counts(draw)
    fact = draw.one((SALES, ORDERS))
    entity, group = draw.one(fact.entities), draw.one(fact.dimensions)
    amount = draw.one(fact.amounts)
    measures = [Term("total", f"sum({amount.sql})", amount.needs), Term("times", "count(*)")]
    each = fact.totals(draw, [entity[0], group], measures, fact.where(draw, 1, 3))
    by = group.name
    if draw.maybe():
        tile = f"ntile({draw.one((4, 5, 10))}) OVER (PARTITION BY {by} ORDER BY total, {entity[0].name}) AS tile"
        columns = [by, "tile", "count(*) AS members", "min(total) AS lowest", "max(total) AS highest"]
        columns += ["sum(total) AS total", f"sum(sum(total)) OVER (PARTITION BY {by} ORDER BY tile) AS up_to"]
        tiled = f"{nested(select(['*', tile], 'per'))} x"
        body = select(columns, tiled, group=f"{by}, tile", order=f"{by}, tile", limit=draw.limit())
        return with_({"per": each}, body)
    columns = [by, "count(*) AS members", "median(total) AS middle", "percentile(total, 0.9) AS high"]
    columns += ["percentile(times, 0.25) AS rarely", "max(times) AS most", "avg(total) AS mean"]
    columns += [f"dense_rank() OVER (ORDER BY count(*) DESC, {by}) AS place"]
    body = select(columns, "per", group=by, having="count(*) > 2", order=f"place, {by}", limit=draw.limit())
    return with_({"per": each}, body)


def _counts_of_counts(draw: Draw) -> str:
    """How many customers have so many orders, those without any included."""
    source = "tpch.customer\n  LEFT JOIN tpch.orders ON o_custkey = c_custkey AND o_comment NOT LIKE '%pending%'"
    source += f"\n  LEFT JOIN tpch.lineitem ON l_orderkey = o_orderkey AND l_shipmode IN ({draw.words(MODES, 1, 3)})"
    columns = ["c_custkey AS customer", "count(l_orderkey) AS lines", "count(DISTINCT o_orderkey) AS orders"]
    per = select(columns, source, group="c_custkey")
    counted = ["orders", "count(*) AS customers", "sum(lines) AS lines", "max(lines) AS most_lines"]
    body = select(counted, "per", group="orders", order="customers DESC, orders", limit=draw.limit())
    return with_({"per": per}, body)
