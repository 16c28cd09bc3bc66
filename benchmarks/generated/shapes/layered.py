"""Models as dbt projects write them: tables renamed, enriched and summed in layers of CTEs, and then one question."""

from __future__ import annotations

from benchmarks.generated.draw import Draw
from benchmarks.generated.sql import nested, select, with_
from benchmarks.generated.words import MODES, REGIONS


def layered(draw: Draw) -> str:
    """Eight to ten CTEs: customers with what they ordered, in tiers; then each of them, or a report about them."""
    measure = draw.one(("amount", "price", "units"))
    queries = {**_renamed(draw), **_enriched(draw), "stats": _stats(draw, measure), "tiers": _tiers(draw)}
    question = draw.one((_customers, _report, _monthly, _first_of_region))
    extra, body = question(draw)
    return with_({**queries, **extra}, body)


def _renamed(draw: Draw) -> dict[str, str]:
    """The tables with the names that the project gives their columns."""
    places = ["n_nationkey AS nation_id", "initcap(n_name) AS nation", "r_name AS region"]
    customers = ["c_custkey AS customer_id", "c_name AS customer_name", "c_nationkey AS nation_id"]
    orders = [
        "o_orderkey AS order_id",
        "o_custkey AS customer_id",
        "o_orderdate AS ordered_on",
        "o_totalprice AS price",
    ]
    lines = ["l_orderkey AS order_id", "l_quantity AS units", "l_extendedprice * (1 - l_discount) AS amount"]
    lines += ["l_returnflag = 'R' AS is_returned", "l_receiptdate > l_commitdate AS is_late", "l_shipmode AS mode"]
    kept = [f"o_orderstatus <> '{draw.one(('F', 'O', 'P'))}'", f"o_orderdate >= DATE '{draw.year()}-01-01'"]
    return {
        "customers": select([*customers, "c_mktsegment AS segment", "c_acctbal AS balance"], "tpch.customer"),
        "places": select(places, "tpch.nation\n  JOIN tpch.region ON r_regionkey = n_regionkey"),
        "orders": select(orders, "tpch.orders", where=[draw.one(kept)]),
        "lines": select(lines, "tpch.lineitem"),
    }


def _enriched(draw: Draw) -> dict[str, str]:
    """Orders with what their lines say, and with their number among the customer's."""
    late = draw.one(("bool_or(is_late)", "max(CASE WHEN is_late THEN 1 ELSE 0 END) = 1"))
    columns = ["order_id", "sum(amount) AS amount", "sum(units) AS units", "count(*) AS line_count"]
    columns += ["count_if(is_returned) AS returned_lines", f"{late} AS was_late"]
    columns += [f"count(DISTINCT CASE WHEN mode IN ({draw.words(MODES, 2, 4)}) THEN mode END) AS modes"]
    over = "PARTITION BY o.customer_id ORDER BY o.ordered_on, o.order_id"
    number = f"row_number() OVER ({over}) AS order_number"
    before = f"lag(o.ordered_on) OVER ({over}) AS ordered_before"
    enriched = ["o.order_id", "o.customer_id", "o.ordered_on", "o.price", "coalesce(t.amount, 0) AS amount"]
    enriched += ["coalesce(t.units, 0) AS units", "coalesce(t.returned_lines, 0) AS returned_lines"]
    enriched += ["coalesce(t.was_late, false) AS was_late", number, before]
    kind = draw.one(("LEFT JOIN", "JOIN"))
    return {
        "order_totals": select(columns, "lines", group="order_id"),
        "enriched": select(enriched, f"orders o\n  {kind} order_totals t ON t.order_id = o.order_id"),
    }


def _stats(draw: Draw, measure: str) -> str:
    columns = ["customer_id", "count(*) AS order_count", f"sum({measure}) AS lifetime"]
    more = [
        "min(ordered_on) AS first_on",
        f"sum(CASE WHEN order_number = 1 THEN {measure} END) AS first_value_of_all",
        "count_if(was_late) AS late_orders",
        "avg(datediff(ordered_on, ordered_before)) AS mean_gap",
        "sum(returned_lines) AS returned_lines",
        f"max({measure}) AS largest",
    ]
    return select([*columns, "max(ordered_on) AS last_on", *draw.some(more, 2, 5)], "enriched", group="customer_id")


def _tiers(draw: Draw) -> str:
    low, high = draw.one((("0.5", "1.5"), ("0.8", "1.2"), ("1", "2")))
    mean = "(SELECT avg(lifetime) FROM stats)"
    tier = f"CASE WHEN lifetime > {high} * {mean} THEN 'gold' WHEN lifetime > {low} * {mean} THEN 'silver'"
    tier += " ELSE 'basic' END"
    if draw.maybe(0.4):
        tier = "concat('tier ', ntile(4) OVER (ORDER BY lifetime DESC, customer_id))"
    recent = f"last_on >= (SELECT max(ordered_on) FROM orders) - INTERVAL {draw.number(60, 300)} DAYS"
    return select(["*", f"{tier} AS tier", f"{recent} AS is_active"], "stats")


_JOINED = """customers c
  JOIN places p USING (nation_id)
  LEFT JOIN tiers t ON t.customer_id = c.customer_id"""


def _customers(draw: Draw) -> tuple[dict[str, str], str]:
    """Each customer: a table that others build on, without an end."""
    columns = ["c.customer_id", "c.customer_name", "p.nation", "p.region", "c.segment", "c.balance"]
    columns += ["coalesce(t.order_count, 0) AS order_count", "coalesce(t.lifetime, 0) AS lifetime", "t.last_on"]
    columns += ["coalesce(t.tier, 'none') AS tier", "coalesce(t.is_active, false) AS is_active"]
    where = [f"p.region <> '{draw.one(REGIONS)}'"] if draw.maybe(0.3) else []
    return {}, select(columns, _JOINED, where=where)


def _report(draw: Draw) -> tuple[dict[str, str], str]:
    """Tiers by place or segment, with subtotals or shares."""
    key = draw.one(("p.region", "c.segment", "p.nation"))
    columns = [f"{key} AS place", "coalesce(t.tier, 'none') AS tier", "count(*) AS customers"]
    columns += ["sum(coalesce(t.lifetime, 0)) AS lifetime", "count_if(t.is_active) AS active"]
    final = select(columns, _JOINED, group=draw.one((f"{key}, coalesce(t.tier, 'none')", "1, 2")))
    shares = ["place", "tier", "customers", "active", "lifetime"]
    shares += ["round(100 * lifetime / nullif(sum(lifetime) OVER (PARTITION BY place), 0), 2) AS share"]
    shares += ["sum(customers) OVER (PARTITION BY tier) AS of_tier"]
    return {"final": final}, select(shares, "final", order="lifetime DESC, place, tier", limit=draw.limit())


def _monthly(draw: Draw) -> tuple[dict[str, str], str]:
    """Months by tier: orders, new customers, running totals."""
    unit = draw.one(("MONTH", "QUARTER"))
    columns = [f"CAST(date_trunc('{unit}', e.ordered_on) AS DATE) AS moment", "t.tier AS tier", "count(*) AS orders"]
    columns += ["count_if(e.order_number = 1) AS new_customers", "sum(e.amount) AS amount"]
    columns += ["count(DISTINCT e.customer_id) AS buyers"]
    months = select(columns, "enriched e\n  JOIN tiers t ON t.customer_id = e.customer_id", group="1, 2")
    running = ["*", "sum(amount) OVER (PARTITION BY tier ORDER BY moment) AS so_far"]
    running += ["amount - lag(amount, 1, 0) OVER (PARTITION BY tier ORDER BY moment) AS change"]
    return {"months": months}, select(running, "months", order="moment DESC, tier", limit=draw.limit())


def _first_of_region(draw: Draw) -> tuple[dict[str, str], str]:
    """The best customers of each region, and those regions' averages."""
    columns = ["c.customer_id", "c.customer_name", "p.region", "t.tier", "t.lifetime"]
    columns += ["row_number() OVER (PARTITION BY p.region ORDER BY t.lifetime DESC, c.customer_id) AS place"]
    means = select(["p.region", "avg(t.lifetime) AS mean", "count(t.customer_id) AS buyers"], _JOINED, group="p.region")
    final = select(columns, _JOINED, where=["t.lifetime IS NOT NULL"])
    body = select(
        ["f.customer_id", "f.customer_name", "f.region", "f.tier", "f.lifetime", "f.place", "m.mean", "m.buyers"],
        f"final f\n  JOIN {nested('SELECT * FROM means')} m ON m.region = f.region",
        where=[f"f.place <= {draw.number(3, 20)}", "f.lifetime > m.mean"],
        order="f.region, f.place",
        limit=draw.limit(),
    )
    return {"means": means, "final": final}, body
