"""Queries about customers, suppliers and parts: who is in which sets, who stands out, and all that is known of each."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.generated.draw import Draw
from benchmarks.generated.facts import ORDERS, SALES, STOCK
from benchmarks.generated.sql import Term, combined, names, nested, select, with_
from benchmarks.generated.words import MODES, PRIORITIES, REGIONS, SEGMENTS


def _buyers(draw: Draw, columns: Sequence[Term], *, distinct: bool) -> str:
    """Those who ordered something of some kind."""
    fact = draw.one((SALES, ORDERS))
    query = fact.select(columns, fact.where(draw, 1, 2))
    return query.replace("SELECT", "SELECT DISTINCT", 1) if distinct else query


def memberships(draw: Draw) -> str:
    """Customers in some sets and not in others: INTERSECT, EXCEPT and UNION of lists, counted or profiled."""
    key = Term("customer", "o_custkey", ("orders",))
    extra = [Term("moment", f"date_trunc('{draw.one(('MONTH', 'QUARTER', 'YEAR'))}', o_orderdate)", ("orders",))]
    columns = [key, *(extra if draw.maybe() else [])]
    lists = {f"list_{i + 1}": _buyers(draw, columns, distinct=draw.maybe()) for i in range(draw.number(2, 4))}
    used = [f"SELECT {names(columns)} FROM {name}" for name in lists]
    query = used[0]
    for other in used[1:]:
        operator = draw.one(("INTERSECT", "INTERSECT", "EXCEPT", "UNION"))
        query = f"{nested(query)}\n{operator}\n{nested(other)}"
    ctes = {**lists, "chosen": query}
    if draw.maybe(0.3):
        counted = ["count(*) AS members", "count(DISTINCT customer) AS customers", "min(customer) AS first_customer"]
        return with_(ctes, select(counted, "chosen"))
    if draw.maybe(0.4):
        return with_(ctes, _unmatched(draw))
    by = draw.some(ORDERS.dimensions[-4:], 1, 2)
    total = [Term("customers", "count(DISTINCT c_custkey)"), Term("balance", "sum(c_acctbal)")]
    total += [Term("mean_value", "avg(o_totalprice)")]
    inside = draw.one(("o_custkey IN (SELECT customer FROM chosen)", "o_custkey NOT IN (SELECT customer FROM chosen)"))
    grouped = ORDERS.totals(draw, by, total, [Term("", inside, ("customer",))], "count(*) > 1")
    body = select(["*"], f"{nested(grouped)} g", order=f"customers DESC, {names(by)}", limit=draw.limit())
    return with_(ctes, body)


def _unmatched(draw: Draw) -> str:
    """Customers that are not chosen, as many write it: by a left join, and the rows that found nothing."""
    key = draw.one(("n_name", "c_mktsegment"))
    source = "tpch.customer\n  JOIN tpch.nation ON n_nationkey = c_nationkey"
    source += "\n  LEFT JOIN (SELECT DISTINCT customer FROM chosen) x ON x.customer = c_custkey"
    columns = [f"{key} AS kind", "count(*) AS customers", "sum(c_acctbal) AS balance", "max(c_acctbal) AS most"]
    return select(columns, source, where=["x.customer IS NULL"], group="1", order="customers DESC, kind")


def segments(draw: Draw) -> str:
    """Customers with some orders and without others, profiled by what is known of them."""
    ordered = "SELECT 1 FROM tpch.orders WHERE o_custkey = c_custkey AND "
    lines = "SELECT * FROM tpch.orders JOIN tpch.lineitem ON l_orderkey = o_orderkey WHERE o_custkey = c_custkey AND "
    listed = "SELECT o_custkey FROM tpch.orders WHERE "
    where = [f"EXISTS ({ordered}{draw.in_year('o_orderdate', draw.year())})"]
    some = [
        f"EXISTS ({lines}l_shipmode IN ({draw.words(MODES, 1, 2)}) AND l_quantity > {draw.number(30, 48)})",
        f"EXISTS ({lines}l_returnflag = 'R' AND l_extendedprice > {draw.number(4, 8)}0000)",
        f"c_custkey IN ({listed}o_orderpriority IN ({draw.words(PRIORITIES, 1, 1)}))",
        f"(SELECT count(*) FROM tpch.orders WHERE o_custkey = c_custkey) > {draw.number(8, 18)}",
    ]
    one, other, third = draw.some(some, 3, 3)
    where += [f"({one} OR {other})"] if draw.maybe(0.6) else [one, other]
    where += draw.some(
        (
            f"NOT EXISTS ({ordered}o_totalprice > {draw.number(30, 45)}0000)",
            f"NOT EXISTS ({lines}l_receiptdate > l_commitdate + INTERVAL '{draw.number(70, 110)}' DAY)",
            f"c_custkey NOT IN ({listed}o_orderstatus = 'P')",
            third,
        ),
        1,
        2,
    )
    source = "tpch.customer\n  JOIN tpch.nation ON n_nationkey = c_nationkey"
    region = draw.maybe()
    if region:
        source += "\n  LEFT JOIN tpch.region ON r_regionkey = n_regionkey"
    keys = draw.some(("n_name", "c_mktsegment", "substring(c_phone, 1, 2)", *(("r_name",) if region else ())), 1, 3)
    columns = [f"{key} AS key_{i + 1}" for i, key in enumerate(keys)]
    measured = ["count(*) AS customers", "sum(c_acctbal) AS balance", "avg(c_acctbal) AS mean_balance"]
    measured += ["min(c_acctbal) AS least", "count_if(c_acctbal < 0) AS in_debt", "max(c_name) AS last_name"]
    named = ", ".join(f"key_{i + 1}" for i in range(len(keys)))
    group = draw.one((", ".join(keys), named))
    return select(
        [*columns, *draw.some(measured[1:], 2, 5), measured[0]],
        source,
        where=where,
        group=group,
        order=f"customers DESC, {named}",
        limit=draw.limit(),
    )


def below_average(draw: Draw) -> str:
    """Those that stand out from the average of their group, or from a part of the whole."""
    kind = draw.number(1, 3)
    if kind == 1:
        return _against_group(draw)
    if kind == 2:
        return _against_whole(draw)
    return _against_own_lines(draw)


def _against_group(draw: Draw) -> str:
    fact = draw.one((SALES, ORDERS, STOCK))
    entity, group = draw.one(fact.entities), draw.one(fact.dimensions)
    measure = fact.measures(draw, 1, 1)[0]
    keys = [*entity, group]
    totals = fact.totals(draw, keys, [Term("total", measure.sql, measure.needs)], fact.where(draw, 1, 2))
    average = select(
        [f"avg(total) * {draw.one(('0.5', '1.2', '1.5'))}"], "totals o", where=[f"o.{group.name} = t.{group.name}"]
    )
    where = [f"t.total {draw.one(('>', '<'))} {nested(average)}"]
    largest = select(["max(o.total)"], "totals o", where=[f"o.{group.name} = t.{group.name}"])
    columns = [*(f"t.{key.name} AS {key.name}" for key in keys), "t.total AS total"]
    columns += [f"{nested(largest)} AS largest"] if draw.maybe() else []
    order = draw.one((f"total DESC, {names(keys)}", names(keys)))
    return with_({"totals": totals}, select(columns, "totals t", where=where, order=order, limit=draw.limit()))


def _against_whole(draw: Draw) -> str:
    fact = draw.one((SALES, STOCK))
    keys, measure = [*draw.one(fact.entities)], fact.measures(draw, 1, 1)[0]
    conditions = fact.where(draw, 1, 2)
    whole = fact.select(
        [Term("part", f"{draw.one(('0.001', '0.002', '0.005'))} * {measure.sql}", measure.needs)], conditions
    )
    every = fact.select([Term("part", "0.0005 * count(*)")], conditions)
    counted = Term("row_count", "count(*)")
    having = f"{measure.sql} > {nested(whole)} AND count(*) >= {nested(every)}"
    totals = fact.totals(draw, keys, [measure, counted], conditions, having)
    order = f"{measure.name} DESC, {names(keys)}"
    return select(["*"], f"{nested(totals)} x", order=order, limit=draw.limit())


def _against_own_lines(draw: Draw) -> str:
    column = draw.one(("l_quantity", "l_extendedprice", "l_discount"))
    own = draw.one(("l_partkey", "l_suppkey"))
    average = select(
        [f"{draw.one(('0.4', '0.6', '1.7'))} * avg(i.{column})"], "tpch.lineitem i", where=[f"i.{own} = l.{own}"]
    )
    where = [f"l.{column} {draw.one(('<', '>'))} {nested(average)}", f"p_size < {draw.number(10, 40)}"]
    key = draw.one(("p_brand", "substring(p_type, 1, 5)", "p_mfgr || ' ' || substring_index(p_container, ' ', -1)"))
    columns = [f"{key} AS kind", "sum(l_extendedprice) / 7.0 AS weekly", "count(*) AS line_count"]
    columns += ["count(DISTINCT l_orderkey) AS orders"] if draw.maybe() else []
    source = "tpch.lineitem l\n  JOIN tpch.part ON p_partkey = l_partkey"
    return select(columns, source, where=where, group=key, order="weekly DESC, kind", limit=draw.limit())


def leaders(draw: Draw) -> str:
    """The first of each group, with all others as one row or compared with the first."""
    fact = draw.one((SALES, ORDERS, STOCK))
    group = draw.one([one for one in fact.dimensions if one.name != "order_quarter"])
    entity, measure = draw.one(fact.entities), fact.measures(draw, 1, 1)[0]
    totals = fact.totals(draw, [group, *entity], [Term("total", measure.sql, measure.needs)], fact.where(draw, 1, 2))
    key, n = entity[0].name, draw.number(1, 5)
    order = {"row_number": f"total DESC, {key}", "rank": "total DESC", "dense_rank": "total DESC"}
    function = draw.one(tuple(order))
    over = f"{function}() OVER (PARTITION BY {group.name} ORDER BY {order[function]})"
    if draw.maybe(0.3):
        qualified = f"SELECT * FROM totals QUALIFY {over} <= {n}"
        body = select(["*"], f"{nested(qualified)} q", order=f"{group.name}, total DESC, {key}", limit=draw.limit())
        return with_({"totals": totals}, body)
    ranked = select(["*", f"{over} AS place", f"sum(total) OVER (PARTITION BY {group.name}) AS of_group"], "totals")
    ctes = {"totals": totals, "ranked": ranked}
    if draw.maybe():
        first = select(
            [group.name, f"CAST({key} AS STRING) AS leader", "total", "place"], "ranked", where=[f"place <= {n}"]
        )
        rest = select(
            [group.name, "'all others'", "sum(total)", str(n + 1)], "ranked", where=[f"place > {n}"], group=group.name
        )
        body = select(
            ["*"],
            f"{nested(combined('UNION ALL', (first, rest)))} u",
            order=f"{group.name}, place, leader",
            limit=draw.limit(),
        )
        return with_(ctes, body)
    columns = [f"r.{group.name} AS {group.name}", f"r.{key} AS {key}", "r.total AS total", "r.place AS place"]
    columns += ["b.best - r.total AS behind", "round(100 * r.total / nullif(r.of_group, 0), 2) AS share"]
    best = select([group.name, "max(total) AS best"], "totals", group=group.name)
    source = f"ranked r\n  LEFT JOIN {nested(best)} b ON b.{group.name} = r.{group.name}"
    order_by = f"{group.name}, place, {key}"
    return with_(ctes, select(columns, source, where=[f"r.place <= {n}"], order=order_by, limit=draw.limit()))


def scorecard(draw: Draw) -> str:
    """Everything about each supplier: totals of several kinds, joined from the left, against thresholds."""
    key = Term("supplier_key", "l_suppkey")
    stocked = Term("supplier_key", "ps_suppkey")
    parts = {
        "sold": SALES.totals(draw, [key], [Term("value", "sum(l_extendedprice)")], SALES.where(draw, 0, 2)),
        "late": SALES.totals(
            draw,
            [key],
            [Term("value", "count(*)")],
            [Term("", "l_receiptdate > l_commitdate"), *SALES.where(draw, 0, 1)],
        ),
        "returned": SALES.totals(
            draw, [key], [Term("value", "sum(l_quantity)")], [Term("", "l_returnflag = 'R'"), *SALES.where(draw, 0, 1)]
        ),
        "stock": STOCK.totals(
            draw, [stocked], [Term("value", "sum(ps_supplycost * ps_availqty)")], STOCK.where(draw, 0, 1)
        ),
        "customers": SALES.totals(
            draw, [key], [Term("value", "count(DISTINCT o_custkey)", ("orders",))], SALES.where(draw, 0, 1)
        ),
        "cheapest": STOCK.totals(draw, [stocked], [Term("value", "min(ps_supplycost)")]),
        "home": SALES.totals(
            draw, [key], [Term("value", "count(*)")], [Term("", "sn.n_name = cn.n_name", ("sn", "cn"))]
        ),
    }
    chosen = draw.some(tuple(parts), 3, 6)
    source = "tpch.supplier s\n  JOIN tpch.nation ON n_nationkey = s_nationkey"
    source += "\n  JOIN tpch.region ON r_regionkey = n_regionkey"
    for name in chosen:
        source += f"\n  LEFT JOIN {name} ON {name}.supplier_key = s.s_suppkey"
    one, other = chosen[:2]
    where = draw.some(
        (
            f"coalesce({one}.value, 0) > (SELECT avg(value) FROM {one})",
            f"coalesce({other}.value, 0) <= (SELECT 2 * avg(value) FROM {other})",
            f"r_name IN ({draw.words(REGIONS, 2, 4)})",
            f"s_acctbal > (SELECT min(c_acctbal) FROM tpch.customer WHERE c_mktsegment = '{draw.one(SEGMENTS)}')",
        ),
        1,
        3,
    )
    columns = ["s_suppkey", "s_name", "n_name", *(f"coalesce({name}.value, 0) AS {name}" for name in chosen)]
    columns += [f"rank() OVER (PARTITION BY n_regionkey ORDER BY coalesce({one}.value, 0) DESC, s_suppkey) AS place"]
    body = select(columns, source, where=where, order=f"{one} DESC, s_suppkey", limit=draw.limit())
    return with_({name: parts[name] for name in chosen}, body)
