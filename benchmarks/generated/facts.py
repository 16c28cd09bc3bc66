"""TPC-H's tables as stars: lines of orders, orders, and stocks of parts."""

from __future__ import annotations

from benchmarks.generated.fact import Fact, Filter
from benchmarks.generated.sql import Term
from benchmarks.generated.words import BRANDS, COLORS, MODES, NATIONS, PRIORITIES, REGIONS, SEGMENTS, TYPES

REVENUE = Term("revenue", "l_extendedprice * (1 - l_discount)")
SIZE_CLASS = "CASE WHEN p_size < 15 THEN 'small' WHEN p_size < 35 THEN 'medium' ELSE 'large' END"
_ORDER_DATE = Term("order_date", "o_orderdate", ("orders",))
_METAL = "substring_index(p_type, ' ', -1)"


def _places(prefix: str, table: str, before: str) -> dict[str, tuple[str, str]]:
    """The nation and the region of a customer or supplier."""
    nation, region = f"{prefix}n", f"{prefix}r"
    return {
        nation: (before, f"JOIN tpch.nation {nation} ON {nation}.n_nationkey = {table}_nationkey"),
        region: (nation, f"JOIN tpch.region {region} ON {region}.r_regionkey = {nation}.n_regionkey"),
    }


_CUSTOMER = (Term("customer_key", "c_custkey", ("customer",)), Term("customer_name", "c_name", ("customer",)))
_CLERK = (Term("clerk", "o_clerk", ("orders",)),)
_SUPPLIER = (Term("supplier_key", "s_suppkey", ("supplier",)), Term("supplier_name", "s_name", ("supplier",)))
_PART = (Term("part_key", "p_partkey", ("part",)), Term("part_name", "p_name", ("part",)))
_OF_CUSTOMERS = (
    Term("segment", "c_mktsegment", ("customer",)),
    Term("customer_nation", "cn.n_name", ("cn",)),
    Term("customer_region", "cr.r_name", ("cr",)),
    Term("phone_code", "substring(c_phone, 1, 2)", ("customer",)),
)
_OF_ORDERS = (
    Term("priority", "o_orderpriority", ("orders",)),
    Term("order_year", "year(o_orderdate)", ("orders",)),
    Term("order_quarter", "quarter(o_orderdate)", ("orders",)),
)
_OF_SUPPLIERS = (
    Term("supplier_nation", "sn.n_name", ("sn",)),
    Term("supplier_region", "sr.r_name", ("sr",)),
)
_OF_PARTS = (
    Term("brand", "p_brand", ("part",)),
    Term("manufacturer", "upper(p_mfgr)", ("part",)),
    Term("metal", _METAL, ("part",)),
    Term("size_class", SIZE_CLASS, ("part",)),
)
_CUSTOMER_FILTERS = (
    Filter(lambda d: f"c_mktsegment IN ({d.words(SEGMENTS, 1, 3)})", ("customer",)),
    Filter(lambda d: f"cn.n_name IN ({d.words(NATIONS, 5, 10)})", ("cn",)),
    Filter(lambda d: f"cr.r_name = '{d.one(REGIONS)}'", ("cr",)),
    Filter(lambda d: f"c_acctbal > {d.number(-5, 40)}00.00", ("customer",)),
)
_ORDER_FILTERS = (
    Filter(lambda d: d.in_period("o_orderdate"), ("orders",), is_dated=True),
    Filter(lambda d: f"o_orderpriority IN ({d.words(PRIORITIES, 2, 3)})", ("orders",)),
    Filter(lambda d: f"o_totalprice > {d.number(2, 12)}0000", ("orders",)),
    Filter(lambda d: "o_comment NOT LIKE '%special%requests%'", ("orders",)),
    Filter(
        lambda d: f"o_custkey IN (SELECT c_custkey FROM tpch.customer WHERE c_acctbal > {d.number(0, 30)}00)",
        ("orders",),
    ),
)
_SUPPLIER_FILTERS = (
    Filter(lambda d: f"sr.r_name <> '{d.one(REGIONS)}'", ("sr",)),
    Filter(lambda d: f"s_acctbal BETWEEN {d.number(-9, 0)}00 AND {d.number(50, 90)}00", ("supplier",)),
)
_PART_FILTERS = (
    Filter(lambda d: f"p_brand IN ({d.words(BRANDS, 5, 9)})", ("part",)),
    Filter(lambda d: f"p_type LIKE '{d.one(TYPES)}%'", ("part",)),
    Filter(lambda d: f"p_size BETWEEN {d.number(1, 15)} AND {d.number(25, 50)}", ("part",)),
    Filter(lambda d: f"(p_name LIKE '%{d.one(COLORS)}%' OR p_size > {d.number(20, 40)})", ("part",)),
)
SALES = Fact(
    table="tpch.lineitem",
    dates=(Term("ship_date", "l_shipdate"), Term("receipt_date", "l_receiptdate"), _ORDER_DATE),
    joins={
        "orders": ("", "JOIN tpch.orders ON o_orderkey = l_orderkey"),
        "customer": ("orders", "JOIN tpch.customer ON c_custkey = o_custkey"),
        **_places("c", "c", "customer"),
        "supplier": ("", "JOIN tpch.supplier ON s_suppkey = l_suppkey"),
        **_places("s", "s", "supplier"),
        "part": ("", "JOIN tpch.part ON p_partkey = l_partkey"),
        "partsupp": ("", "JOIN tpch.partsupp ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey"),
    },
    dimensions=(
        Term("ship_mode", "l_shipmode"),
        Term("return_flag", "l_returnflag"),
        Term("ship_year", "extract(YEAR FROM l_shipdate)"),
        Term("timeliness", "CASE WHEN l_receiptdate > l_commitdate THEN 'late' ELSE 'in time' END"),
        *_OF_ORDERS,
        *_OF_CUSTOMERS,
        *_OF_SUPPLIERS,
        *_OF_PARTS,
    ),
    amounts=(
        REVENUE,
        Term("quantity", "l_quantity"),
        Term("charge", "l_extendedprice * (1 - l_discount) * (1 + l_tax)"),
        Term("reduction", "l_extendedprice * l_discount"),
        Term("margin", "l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity", ("partsupp",)),
        Term("days", "datediff(l_receiptdate, l_shipdate)"),
    ),
    counted=(
        Term("orders", "l_orderkey"),
        Term("parts", "l_partkey"),
        Term("suppliers", "l_suppkey"),
        Term("customers", "o_custkey", ("orders",)),
    ),
    entities=(_CUSTOMER, _CLERK, _SUPPLIER, _PART),
    filters=(
        Filter(lambda d: d.in_period("l_shipdate"), is_dated=True),
        Filter(lambda d: f"l_shipmode IN ({d.words(MODES, 2, 4)})"),
        Filter(lambda d: f"l_quantity < {d.number(20, 45)}"),
        Filter(
            lambda d: (
                "EXISTS (SELECT 1 FROM tpch.partsupp x WHERE x.ps_partkey = l_partkey"
                f" AND x.ps_suppkey = l_suppkey AND x.ps_availqty > {d.number(5, 40)}00)"
            )
        ),
        Filter(lambda d: f"l_discount BETWEEN 0.0{d.number(0, 3)} AND 0.0{d.number(5, 9)}"),
        *_ORDER_FILTERS,
        *_CUSTOMER_FILTERS,
        *_SUPPLIER_FILTERS,
        *_PART_FILTERS,
    ),
    pivots=(
        (Term("ship_mode", "l_shipmode"), tuple(f"'{mode}'" for mode in MODES)),
        (Term("return_flag", "l_returnflag"), ("'R'", "'A'", "'N'")),
        (Term("ship_year", "year(l_shipdate)"), ("1993", "1994", "1995", "1996", "1997")),
        (Term("segment", "c_mktsegment", ("customer",)), tuple(f"'{segment}'" for segment in SEGMENTS)),
        (Term("size_class", SIZE_CLASS, ("part",)), ("'small'", "'medium'", "'large'")),
    ),
)
ORDERS = Fact(
    table="tpch.orders",
    dates=(_ORDER_DATE,),
    joins={
        "orders": ("", ""),
        "customer": ("", "JOIN tpch.customer ON c_custkey = o_custkey"),
        **_places("c", "c", "customer"),
    },
    dimensions=(Term("order_status", "o_orderstatus"), *_OF_ORDERS, *_OF_CUSTOMERS),
    amounts=(
        Term("order_value", "o_totalprice"),
        Term("urgent", "CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END"),
        Term("balance", "c_acctbal", ("customer",)),
        Term("open_value", "CASE WHEN o_orderstatus = 'F' THEN 0 ELSE o_totalprice END"),
    ),
    counted=(Term("customers", "o_custkey"), Term("clerks", "o_clerk"), Term("days", "o_orderdate")),
    entities=(_CUSTOMER, _CLERK),
    filters=(*_ORDER_FILTERS, *_CUSTOMER_FILTERS),
    pivots=(
        (Term("priority", "o_orderpriority"), tuple(f"'{priority}'" for priority in PRIORITIES)),
        (Term("order_status", "o_orderstatus"), ("'F'", "'O'", "'P'")),
        (Term("order_month", "month(o_orderdate)"), tuple(str(month) for month in range(1, 13))),
        (Term("order_year", "extract(YEAR FROM o_orderdate)"), ("1993", "1994", "1995", "1996", "1997")),
    ),
)
STOCK = Fact(
    table="tpch.partsupp",
    dates=(),
    joins={
        "part": ("", "JOIN tpch.part ON p_partkey = ps_partkey"),
        "supplier": ("", "JOIN tpch.supplier ON s_suppkey = ps_suppkey"),
        **_places("s", "s", "supplier"),
    },
    dimensions=(*_OF_SUPPLIERS, *_OF_PARTS, Term("container", "substring_index(p_container, ' ', 1)", ("part",))),
    amounts=(
        Term("stock_value", "ps_supplycost * ps_availqty"),
        Term("available", "ps_availqty"),
        Term("cost", "ps_supplycost"),
        Term("premium", "p_retailprice - ps_supplycost", ("part",)),
    ),
    counted=(Term("parts", "ps_partkey"), Term("suppliers", "ps_suppkey")),
    entities=(_SUPPLIER, _PART),
    filters=(
        Filter(lambda d: f"ps_availqty > {d.number(1, 30)}00"),
        Filter(lambda d: f"ps_supplycost < {d.number(5, 9)}00.50"),
        *_SUPPLIER_FILTERS,
        *_PART_FILTERS,
    ),
    pivots=(),
)
