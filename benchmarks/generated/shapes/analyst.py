"""What analysts write by hand: calendars without gaps, bands, lists with much about each row, the latest of each."""

from __future__ import annotations

from itertools import pairwise

from benchmarks.generated.draw import Draw
from benchmarks.generated.facts import ORDERS, REVENUE, SALES
from benchmarks.generated.sql import Term, names, nested, select, with_
from benchmarks.generated.words import MODES, NATIONS, PRIORITIES, SEGMENTS


def calendar(draw: Draw) -> str:
    """Totals of every month of a calendar and every value of a key, those without any as zero."""
    fact = draw.one((SALES, ORDERS))
    key = draw.one([one for one in fact.dimensions if "year" not in one.name and "quarter" not in one.name])
    date, measure = draw.one(fact.dates), fact.measures(draw, 1, 1)[0]
    moment = Term("month", f"CAST(date_trunc('MONTH', {date.sql}) AS DATE)", date.needs)
    conditions = fact.where(draw, 1, 2, dated=False)
    totals = fact.totals(draw, [key, moment], [Term("total", measure.sql, measure.needs)], conditions)
    year = draw.year(1)
    dates = f"sequence(DATE '{year}-01-01', DATE '{year + 1}-12-01', INTERVAL 1 MONTH)"
    filled = select(
        ["m.month", f"k.{key.name}", "coalesce(t.total, 0) AS total"],
        f"months m CROSS JOIN keys k\n  LEFT JOIN totals t ON t.month = m.month AND t.{key.name} = k.{key.name}",
    )
    windows = ["sum(total) OVER w AS so_far", "total - lag(total, 12, 0) OVER w AS against_last_year"]
    windows += [f"percent_rank() OVER (PARTITION BY month ORDER BY total, {key.name}) AS standing"]
    nearby = "RANGE BETWEEN INTERVAL 70 DAYS PRECEDING AND CURRENT ROW"
    windows += [f"max(total) OVER (PARTITION BY {key.name} ORDER BY month {nearby}) AS best_of_quarter"]
    named = f"filled\nWINDOW w AS (PARTITION BY {key.name} ORDER BY month)"
    ctes = {
        "months": f"SELECT explode({dates}) AS month",
        "totals": totals,
        "keys": select([key.name], "totals", distinct=True),
        "filled": filled,
    }
    columns = ["*", windows[0], *draw.some(windows[1:], 1, 3)]
    return with_(ctes, select(columns, named, order=f"{key.name}, month", limit=draw.limit()))


def bands(draw: Draw) -> str:
    """How many entities are in each of several bands of their totals, by a join on ranges."""
    fact = draw.one((SALES, ORDERS))
    entity, group = draw.one(fact.entities), draw.one(fact.dimensions)
    measure = Term("total", f"sum({fact.amounts[0].sql})", fact.amounts[0].needs)
    each = fact.totals(draw, [*entity, group], [measure, Term("times", "count(*)")], fact.where(draw, 1, 2))
    bounds = [0, *(10_000 * bound for bound in sorted(draw.some(range(2, 60), 3, 5))), 90_000_000]
    rows = [f"('band {i + 1}', {low}, {high})" for i, (low, high) in enumerate(pairwise(bounds))]
    columns = ["b.band AS band", f"t.{group.name} AS {group.name}", f"count(t.{entity[0].name}) AS members"]
    columns += ["sum(t.total) AS total", "avg(t.times) AS mean_times"]
    kind = draw.one(("JOIN", "LEFT JOIN"))
    on = draw.one(("t.total >= b.low AND t.total < b.high", "t.total BETWEEN b.low AND b.high - 0.01"))
    counted = select(columns, f"bands b\n  {kind} each_one t ON {on}", group=draw.one(("1, 2", "ALL")))
    shown = ["band", group.name, "members", "coalesce(total, 0) AS amount", "amount / nullif(members, 0) AS mean"]
    shown += [f"cume_dist() OVER (PARTITION BY band ORDER BY members, {group.name}) AS standing"]
    ctes = {"bands(band, low, high)": f"VALUES {', '.join(rows)}", "each_one": each, "counted": counted}
    return with_(ctes, select(shown, "counted", order=f"band, {group.name}", limit=draw.limit()))


def profile(draw: Draw) -> str:
    """A list of customers with a subquery for most of what it tells of each."""
    own = "FROM tpch.orders WHERE o_custkey = c_custkey"
    lines = "FROM tpch.orders JOIN tpch.lineitem ON l_orderkey = o_orderkey WHERE o_custkey = c_custkey"
    late = f"l_receiptdate > date_add(l_commitdate, {draw.number(20, 80)})"
    facts = [
        f"(SELECT max(o_orderdate) {own}) AS last_on",
        f"(SELECT count(*) {own} AND o_orderpriority = '{draw.one(PRIORITIES)}') AS of_priority",
        f"(SELECT sum({REVENUE.sql}) {lines} AND l_shipmode IN ({draw.words(MODES, 1, 3)})) AS revenue",
        f"(SELECT avg(l_quantity) {lines}) AS mean_quantity",
        f"CASE WHEN EXISTS (SELECT 1 {lines} AND {late}) THEN 'late' ELSE 'in time' END AS service",
        f"c_custkey IN (SELECT o_custkey FROM tpch.orders WHERE o_totalprice > {draw.number(20, 40)}0000) AS is_large",
        "c_acctbal - (SELECT avg(x.c_acctbal) FROM tpch.customer x WHERE x.c_nationkey = n_nationkey) AS above_nation",
        "concat_ws(' / ', n_name, c_mktsegment, substring(c_phone, 1, 2)) AS label",
    ]
    where = draw.some(
        (
            f"n_name IN ({draw.words(NATIONS, 6, 12)})",
            f"c_mktsegment = '{draw.one(SEGMENTS)}'",
            f"c_acctbal > (SELECT avg(c_acctbal) FROM tpch.customer WHERE c_acctbal > {draw.number(-5, 0)}00)",
            f"c_name LIKE ANY ('%{draw.number(0, 9)}', '%{draw.number(0, 9)}')",
        ),
        1,
        2,
    )
    columns = ["c_custkey", "c_name", "n_name", "c_acctbal", *draw.some(facts, 4, 7)]
    order = draw.one(("c_acctbal DESC, c_custkey", "n_name, c_custkey"))
    source = "tpch.customer\n  JOIN tpch.nation ON n_nationkey = c_nationkey"
    return select(columns, source, where=where, order=order, limit=draw.limit())


def latest(draw: Draw) -> str:
    """The latest orders of each customer, or the largest ones, and what is in them."""
    by = draw.one(("o_orderdate DESC, o_orderkey DESC", "o_totalprice DESC, o_orderkey"))
    columns = ["o_orderkey", "o_orderdate", "o_totalprice", "o_orderpriority"]
    n, kept = draw.number(1, 3), f"c_mktsegment IN ({draw.words(SEGMENTS, 1, 3)})"
    own = select(columns, "tpch.orders", where=["o_custkey = c.c_custkey"], order=by, limit=n)
    listed = ["c.c_custkey", "c.c_name", "c.c_nationkey", *(f"x.{one}" for one in columns)]
    recent = select(listed, f"tpch.customer c,\n  LATERAL {nested(own)} x", where=[kept])
    if draw.maybe():
        number = f"row_number() OVER (PARTITION BY o_custkey ORDER BY {by}) AS number"
        source = f"tpch.customer\n  JOIN {nested(select(['*', number], 'tpch.orders'))} x ON o_custkey = c_custkey"
        named = [one.replace("c.", "").replace("x.", "") for one in listed]
        recent = select(named, source, where=[f"number <= {n}", kept])
    contents = select(
        ["l_orderkey", "count(*) AS line_count", f"sum({REVENUE.sql}) AS revenue", "max(l_receiptdate) AS complete_on"],
        "tpch.lineitem\n  LEFT SEMI JOIN recent ON o_orderkey = l_orderkey",
        group="l_orderkey",
    )
    ctes = {"recent": recent, "contents": contents}
    source = "recent\n  JOIN tpch.nation ON n_nationkey = c_nationkey\n  LEFT JOIN contents ON l_orderkey = o_orderkey"
    if draw.maybe():
        columns = ["r.c_custkey", "r.c_name", "n_name", "o_orderkey", "o_totalprice", "line_count", "revenue"]
        columns += ["datediff(complete_on, o_orderdate) AS days", "days > 60 AS is_slow"]
        body = select(columns, source.replace("recent", "recent r", 1), order=f"{by}, c_custkey", limit=draw.limit())
        return with_(ctes, body)
    keys = [Term("nation", "n_name"), Term("priority", "substring(o_orderpriority, 3)")]
    columns = [*(key.column for key in keys), "count(*) AS orders", "sum(revenue) AS revenue"]
    columns += ["max(o_totalprice) AS largest", "sum(line_count) / count(DISTINCT c_custkey) AS lines_each"]
    columns += ["date_format(max(o_orderdate), 'yyyy-MM') AS last_month"]
    return with_(ctes, select(columns, source, group="ALL", order=f"orders DESC, {names(keys)}", limit=draw.limit()))
