"""Comparisons over time: a year with the year before, trends, channels, cohorts."""

from __future__ import annotations

from benchmarks.generated.draw import FIRST_YEAR, Draw
from benchmarks.generated.facts import ORDERS, REVENUE, SALES, STOCK
from benchmarks.generated.sql import Term, alike, combined, names, nested, select, with_


def year_over_year(draw: Draw) -> str:
    """Totals by key and year, joined with themselves a year before."""
    fact = draw.one((SALES, SALES, ORDERS))
    keys = [*draw.one(fact.entities)]
    if draw.maybe():
        keys = draw.some([one for one in fact.dimensions if "year" not in one.name], 1, 2)
    date, measure = draw.one(fact.dates), fact.measures(draw, 1, 1)[0]
    year = Term("period", f"year({date.sql})", date.needs)
    total = Term("total", measure.sql, measure.needs)
    yearly = fact.totals(draw, [*keys, year], [total], fact.where(draw, 0, 2, dated=False))
    kind = draw.one(("JOIN", "LEFT JOIN"))
    source = f"yearly cur\n  {kind} yearly prev ON {alike(keys, 'prev', 'cur')} AND prev.period = cur.period - 1"
    change = "cur.total - coalesce(prev.total, 0)"
    columns = [
        *(f"cur.{key.name} AS {key.name}" for key in keys),
        "cur.period AS period",
        "cur.total AS total",
        "prev.total AS previous",
        f"{change} AS change",
        "CASE WHEN prev.total > 0 THEN round(cur.total / prev.total, 4) END AS growth",
    ]
    where = [
        draw.one((f"cur.period = {draw.year(0)}", f"cur.period BETWEEN {FIRST_YEAR + 1} AND 1997")),
        *draw.some((f"{change} < 0", "cur.total > (SELECT avg(total) FROM yearly)"), 0, 1),
    ]
    order = draw.one((f"change, {names(keys)}, period", f"period, change DESC, {names(keys)}"))
    return with_({"yearly": yearly}, select(columns, source, where=where, order=order, limit=draw.limit()))


_CHANNELS = {
    "air": "l_shipmode IN ('AIR', 'REG AIR')",
    "land": "l_shipmode IN ('TRUCK', 'RAIL')",
    "other": "l_shipmode IN ('SHIP', 'FOB', 'MAIL')",
}


def channel_growth(draw: Draw) -> str:
    """Entities of which one channel grew more than another, from four to six readings of one union."""
    keys = [*draw.one(SALES.entities)]
    amount, date = draw.one(SALES.amounts[:4]), draw.one(SALES.dates)
    used = draw.some(tuple(_CHANNELS), 2, 3)
    total = Term("total", f"sum({amount.sql})", amount.needs)
    year = Term("period", f"year({date.sql})", date.needs)
    parts = [
        SALES.totals(draw, [*keys, year], [total, Term("channel", f"'{name}'")], [Term("", _CHANNELS[name])])
        for name in used
    ]
    first, key = draw.year(1), keys[0].name
    readings = [(f"{name}_{number}", name, first + number) for name in used for number in (0, 1)]
    where = [f"{readings[0][0]}.{key} = {alias}.{key}" for alias, _, _ in readings[1:]]
    for alias, name, period in readings:
        where += [f"{alias}.channel = '{name}'", f"{alias}.period = {period}"]
    where += [f"{name}_0.total > 0" for name in used]
    growth = [f"CASE WHEN {name}_0.total > 0 THEN {name}_1.total / {name}_0.total END" for name in used]
    where += [f"{growth[0]} > {other}" for other in growth[1:]]
    alias = readings[0][0]
    columns = [*(f"{alias}.{one.name} AS {one.name}" for one in keys)]
    columns += [f"round({text}, 4) AS {name}_growth" for text, name in zip(growth, used, strict=True)]
    source = ", ".join(f"totals {alias}" for alias, _, _ in readings)
    order = draw.one((names(keys), f"{used[0]}_growth DESC, {names(keys)}"))
    return with_(
        {"totals": combined("UNION ALL", parts)},
        select(columns, source, where=where, order=order, limit=draw.limit()),
    )


def trend(draw: Draw) -> str:
    """Totals by month or quarter with those before and after, running and moving ones."""
    fact = draw.one((SALES, ORDERS))
    keys = draw.some([one for one in fact.dimensions if "year" not in one.name and "quarter" not in one.name], 1, 2)
    date, unit = draw.one(fact.dates), draw.one(("MONTH", "QUARTER", "YEAR"))
    moment = Term("moment", f"CAST(date_trunc('{unit}', {date.sql}) AS DATE)", date.needs)
    measure = fact.measures(draw, 1, 1)[0]
    series = fact.totals(
        draw, [*keys, moment], [Term("total", measure.sql, measure.needs)], fact.where(draw, 0, 2, dated=False)
    )
    by = f"PARTITION BY {names(keys)} ORDER BY moment"
    windows = [
        f"lag(total) OVER ({by}) AS before",
        f"lead(total, 1) OVER ({by}) AS following",
        f"sum(total) OVER ({by} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS running",
        f"avg(total) OVER ({by} ROWS BETWEEN {draw.number(2, 5)} PRECEDING AND CURRENT ROW) AS moving",
        f"sum(total) OVER ({by} RANGE BETWEEN INTERVAL 200 DAYS PRECEDING AND CURRENT ROW) AS half_year",
        f"first_value(total) OVER ({by}) AS first_total",
        f"avg(total) OVER (PARTITION BY {names(keys)}, year(moment)) AS mean_of_year",
        f"row_number() OVER ({by}) AS number",
    ]
    chosen = [*draw.some(windows[1:6], 1, 3), windows[0], *windows[6:]]
    compared = select([*(key.name for key in keys), "moment", "total", *chosen], "series")
    if draw.maybe(0.4):
        return with_({"series": series, "compared": compared}, _neighbours(draw, keys))
    off = "CASE WHEN mean_of_year > 0 THEN abs(total - mean_of_year) / mean_of_year END"
    where = [f"{off} > 0.{draw.number(1, 3)}", "before IS NOT NULL"]
    columns = ["*", "total - before AS change"]
    order = draw.one((f"change DESC, {names(keys)}, moment", f"{names(keys)}, moment"))
    body = select(columns, "compared", where=where, order=order, limit=draw.limit())
    return with_({"series": series, "compared": compared}, body)


def _neighbours(draw: Draw, keys: list[Term]) -> str:
    """A row of a series with the rows beside it, by joins."""
    source = f"""compared c
  JOIN compared p ON {alike(keys, "p", "c")} AND p.number = c.number - 1
  LEFT JOIN compared n ON {alike(keys, "n", "c")} AND n.number = c.number + 1"""
    columns = [*(f"c.{key.name} AS {key.name}" for key in keys), "c.moment AS moment", "c.total AS total"]
    columns += ["p.total AS previous", "n.total AS next", "c.mean_of_year AS mean_of_year"]
    where = [draw.one(("c.total > c.mean_of_year", f"year(c.moment) = {draw.year()}"))]
    order = f"c.total - c.mean_of_year DESC, {names(keys)}, moment"
    return select(columns, source, where=where, order=order, limit=draw.limit())


def channels(draw: Draw) -> str:
    """What was sold, returned and is in stock, one below the other, with subtotals."""
    key = draw.one([one for one in STOCK.dimensions if any(other.name == one.name for other in SALES.dimensions)])
    period = Term("", draw.in_period("l_shipdate"))
    amount = Term("amount", f"sum({REVENUE.sql})")
    sold = SALES.totals(draw, [key], [amount, Term("deals", "count(DISTINCT l_orderkey)")], [period])
    back = [period, Term("", "l_returnflag = 'R'")]
    returned = SALES.totals(draw, [key], [amount, Term("deals", "count(*)")], back)
    value = Term("amount", "sum(ps_supplycost * ps_availqty)")
    stock = STOCK.totals(draw, [key], [value, Term("deals", "count(DISTINCT ps_suppkey)")], STOCK.where(draw, 0, 1))
    joined = select(
        [
            f"s.{key.name} AS id",
            "s.amount - coalesce(r.amount, 0) AS amount",
            "s.deals - coalesce(r.deals, 0) AS deals",
        ],
        f"sold s LEFT JOIN returned r ON r.{key.name} = s.{key.name}",
    )
    parts = [
        f"SELECT 'kept' AS channel, id, amount, deals FROM {nested(joined)} k",
        f"SELECT 'returned' AS channel, {key.name}, amount, deals FROM returned",
        f"SELECT 'stock' AS channel, {key.name}, amount, deals FROM stock",
    ]
    used = parts if draw.maybe(0.7) else parts[:2]
    grouping = draw.one(
        ("ROLLUP (channel, id)", "CUBE (channel, id)", "GROUPING SETS ((channel), (channel, id), (id))")
    )
    columns = ["channel", "id", "grouping_id() AS level", "sum(amount) AS amount", "sum(deals) AS deals"]
    body = select(
        columns,
        f"{nested(combined('UNION ALL', used))} x",
        group=grouping,
        order="level DESC, channel, id",
        limit=draw.limit(),
    )
    ctes = {"sold": sold, "returned": returned, "stock": stock}
    return with_(ctes if used == parts else {name: ctes[name] for name in ("sold", "returned")}, body)


def cohorts(draw: Draw) -> str:
    """Customers by the quarter or year of their first order, and how many still order later on."""
    unit = draw.one(("QUARTER", "YEAR"))
    age = {
        "YEAR": "year(o_orderdate) - year(began)",
        "QUARTER": "4 * (year(o_orderdate) - year(began)) + quarter(o_orderdate) - quarter(began)",
    }[unit]
    first = select(["o_custkey AS customer", "min(o_orderdate) AS began"], "tpch.orders", group="o_custkey")
    segment = draw.one(
        ("c_mktsegment", "substring(c_phone, 1, 2)", "CASE WHEN c_acctbal < 0 THEN 'debt' ELSE 'credit' END")
    )
    members = select(
        ["customer", "began", f"CAST(date_trunc('{unit}', began) AS DATE) AS cohort", f"{segment} AS kind"],
        "firsts JOIN tpch.customer ON c_custkey = customer",
    )
    active = select(
        ["cohort", "kind", f"{age} AS age", "count(DISTINCT customer) AS active", "sum(o_totalprice) AS spent"],
        "members JOIN tpch.orders ON o_custkey = customer",
        group="1, 2, 3",
    )
    sizes = select(["cohort", "kind", "count(*) AS size"], "members", group="cohort, kind")
    columns = [
        *("a.cohort AS cohort", "a.kind AS kind", "age", "active", "size"),
        "round(100 * active / CAST(size AS DECIMAL(10, 0)), 2) AS retained",
        "sum(spent) OVER (PARTITION BY a.cohort, a.kind ORDER BY age) AS spent_so_far",
    ]
    body = select(
        columns,
        "activity a JOIN sizes s ON s.cohort = a.cohort AND s.kind = a.kind",
        where=[f"age <= {draw.number(4, 12)}", f"size > {draw.number(1, 5)}"],
        order="cohort, kind, age",
        limit=draw.limit(),
    )
    return with_({"firsts": first, "members": members, "activity": active, "sizes": sizes}, body)


def full_periods(draw: Draw) -> str:
    """Two stars or two periods side by side, with what only one of them has."""
    entity = draw.some(SALES.entities, 1, 1)[0]
    keys, (one, other) = [*entity], draw.some((SALES.amounts[0], SALES.amounts[2], SALES.amounts[3]), 2, 2)
    year = draw.year(1)
    left = SALES.totals(
        draw,
        keys,
        [Term("total", f"sum({one.sql})")],
        [Term("", draw.in_year("l_shipdate", year)), *SALES.where(draw, 0, 1, dated=False)],
    )
    right = SALES.totals(
        draw, keys, [Term("total", f"sum({other.sql})")], [Term("", draw.in_year("l_shipdate", year + 1))]
    )
    both = select(
        [
            *(f"coalesce(a.{key.name}, b.{key.name}) AS {key.name}" for key in keys),
            "a.total AS earlier",
            "b.total AS later",
        ],
        f"earlier a\n  FULL OUTER JOIN later b ON {alike(keys, 'a', 'b')}",
    )
    if draw.maybe(0.3):
        return _three_years(draw, year)
    ctes = {"earlier": left, "later": right, "sides": both}
    if draw.maybe(0.4):
        counted = [
            "sum(CASE WHEN later IS NULL THEN 1 ELSE 0 END) AS only_earlier",
            "count_if(earlier IS NULL) AS only_later",
            "count(CASE WHEN earlier IS NOT NULL AND later IS NOT NULL THEN 1 END) AS in_both",
            "sum(coalesce(later, 0) - coalesce(earlier, 0)) AS change",
        ]
        return with_(ctes, select(counted, "sides"))
    order = f"{keys[0].name}"
    columns = [
        *(key.name for key in keys),
        "earlier",
        "later",
        f"sum(coalesce(later, 0)) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING) AS running",
        "coalesce(later, 0) - coalesce(earlier, 0) AS change",
    ]
    where = [draw.one(("change > 0", "change < 0", "earlier IS NULL OR later IS NULL"))]
    compared = select(columns, "sides")
    body = select(["*"], f"{nested(compared)} c", where=where, order=f"change DESC, {names(keys)}", limit=draw.limit())
    return with_(ctes, body)


def _three_years(draw: Draw, first: int) -> str:
    """Three years side by side, joined by the names of their keys."""
    keys, amount = draw.some(SALES.dimensions[4:], 1, 2), draw.one(SALES.amounts[:4])
    conditions = SALES.where(draw, 2, 3, dated=False)
    years = {
        f"year_{i + 1}": SALES.totals(
            draw,
            keys,
            [Term(f"total_{i + 1}", f"sum({amount.sql})", amount.needs)],
            [Term("", draw.in_year("l_shipdate", first - 1 + i)), *conditions],
        )
        for i in range(3)
    }
    by = names(keys)
    source = f"year_1\n  FULL JOIN year_2 USING ({by})\n  FULL JOIN year_3 USING ({by})"
    columns = [by, *(f"coalesce(total_{i}, 0) AS total_{i}" for i in (1, 2, 3))]
    columns += ["total_3 IS NOT NULL AND total_1 IS NULL AS is_new"]
    return with_(years, select(columns, source, order=f"total_3 DESC, {by}", limit=draw.limit()))
