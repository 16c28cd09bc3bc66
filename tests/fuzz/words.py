"""What the grammar fills its queries with; all over columns ``k INT, v BIGINT, d DECIMAL(10,2), s STRING``."""

# fmt: off
CONDITIONS = [
    "k > 1", "v IS NOT NULL", "s IN ('a', '')", "coalesce(d, 0) >= 0", "k <=> NULL", "v % 2 = 0", "k = 1 OR s > 'a'",
    "NOT (k = 2 AND s LIKE 'b%')", "v BETWEEN 0 AND k", "exists(array(k, v), x -> x = 1)",
]
JOIN_CONDITIONS = [
    "x.k = y.k", "x.k = y.k AND x.s = y.s", "x.k <=> y.k AND x.v = y.v", "x.k = y.k AND x.v < y.v", "x.s = y.s",
    "x.k < y.k", "x.k + 1 = y.k", "x.v BETWEEN y.k AND y.v", "x.k = y.k AND x.k > 1", "upper(x.s) = upper(y.s) OR x.k = y.k",
]
JOIN_SUBQUERIES = [
    "x.v > (SELECT min(v) FROM ({inner}))", "y.d < (SELECT max(d) FROM ({inner}))", "x.s IN (SELECT s FROM ({inner}))",
    "EXISTS (SELECT 1 FROM ({inner}) z WHERE z.k = x.k AND z.v > x.v)", "y.v = 1 OR x.v IN (SELECT v FROM ({inner}))",
    "NOT EXISTS (SELECT 1 FROM ({inner}) z WHERE z.s = y.s)", "x.v + y.v > (SELECT count(*) FROM ({inner}))",
]
GROUP_CONDITIONS = ["v > (SELECT min(v) FROM ({inner}))", "s IN (SELECT s FROM ({inner}))", "k + (SELECT max(k) FROM ({inner})) > 3"]
LITERALS = [
    "TIMESTAMP '2024-01-31 10:00:00' - INTERVAL 1 DAY 2 HOURS > TIMESTAMP '2024-01-30 07:59:59' + make_dt_interval(0, 0, 0, v)",
    "DATE '2024-01-31' + INTERVAL '1-1' YEAR TO MONTH > DATE '2024-01-01' + k",
    "DATE '2024-03-31' - INTERVAL 1 YEAR 1 MONTH < add_months(DATE '2023-01-01', k)",
    "TIMESTAMP '2024-01-01 00:00:00' + k * INTERVAL '1 02:03:04.5' DAY TO SECOND < TIMESTAMP '2024-01-03'",
    "TIMESTAMP '2024-01-01 00:00:00' + INTERVAL '1' HOUR - 2 * INTERVAL 1 DAY 2 HOURS < TIMESTAMP '2024-01-01 00:00:00' - k * INTERVAL 1 DAY",
    "- INTERVAL '1:30' MINUTE TO SECOND < k * INTERVAL '45' SECOND - INTERVAL 2 MINUTES",
    "CAST(TIME '00:01:52' AS INT) > k * 56", "TIME '10:00:00' > TIME '09:59:59.999999'", "X'1F' < CAST(s AS BINARY)",
    "v < 1e10", "v > -.5E-1D", "d >= 1.05BD", "v % 3L = 1Y", "k <> 2S", "v / 2.5F > 0.2", "1e-3BD < d", "s <> r'a\\b'",
    "s > 'a' 'b'", "v BETWEEN -1L AND 1E1BD", "TIMESTAMP_NTZ '2024-01-01 10:00:00' > DATE '2024-01-01' + k",
]
"""Conditions with literals of every form that the Spark SQL reference has."""
NUMBERS = ["sum(v)", "count(v) - 1", "max(d)", "min(s) = 'a'", "CAST(max(k) AS STRING)", "bool_or(v > 0)", "k", "NULL"]
"""What HAVING casts to a boolean."""
CORRELATED = [
    "SELECT max(y.v) FROM ({inner}) y WHERE y.k = x.k",
    "SELECT count(*) FROM ({inner}) y WHERE y.s = x.s AND y.v > 0",
    "SELECT y.v FROM ({inner}) y WHERE y.k < x.k ORDER BY y.v LIMIT 1",
    "SELECT sum(y.v) FROM ({inner}) y WHERE y.k = x.k HAVING count(*) > 1",
    "SELECT y.k + x.k AS e FROM ({inner}) y WHERE y.v > 0 ORDER BY e LIMIT 1",
]
"""A limit is by columns of the subquery's own output: Spark may lose the order of others, and its answer is then chance."""
PROJECTIONS = {
    "k": ["k", "CAST(k + 1 AS INT)", "CAST(v % 3 AS INT)", "CASE WHEN v > 0 THEN k END", "aggregate(array(k, 1), 0, (a, x) -> a + x)"],
    "v": ["v", "coalesce(v, CAST(k AS BIGINT))", "v * 2", "CAST(length(s) AS BIGINT)", "named_struct('a', v, 'b', k).a", "map('a', v)['a']"],
    "d": ["d", "CAST(d / 2 AS DECIMAL(10,2))", "CAST(k AS DECIMAL(10,2))", "greatest(d, 0.5)"],
    "s": ["s", "upper(s)", "concat(s, CAST(k AS STRING))", "nullif(s, 'a')", "to_json(struct(k, s))", "array_join(transform(array(s, 'z'), x -> x || '!'), '-')"],
}
AGGREGATES = [
    "count(*)", "count(v)", "sum(v)", "sum(d)", "avg(d)", "avg(v)", "min(s)", "max(v)", "min(d)", "max(s)",
    "count(DISTINCT s)", "count(DISTINCT k, v)", "sum(DISTINCT v)", "sum(v) FILTER (WHERE k > 1)", "bool_or(v > 0)",
    "every(k > 0)", "count_if(v > 1)", "percentile(v, 0.5)", "sort_array(collect_set(s))", "max(v) - min(v)",
    "sum(v) + count(*)", "approx_count_distinct(k)", "bit_xor(v)", "max_by(k, struct(v, d, s, k))",
    "count(DISTINCT v) FILTER (WHERE k > 0)", "avg(DISTINCT d)", "max(struct(k, v))", "min(array(s, upper(s)))",
    "listagg(s, ',') WITHIN GROUP (ORDER BY s)", "percentile_disc(0.5) WITHIN GROUP (ORDER BY v)", "median(k)",
    "sum(CASE WHEN s = 'a' THEN d END)", "min(v) FILTER (WHERE s <> 'a')", "bit_and(k)", "sort_array(collect_list(v))",
]
WINDOWS = [
    ("row_number()", ""), ("rank()", ""), ("dense_rank()", ""), ("lag(v)", ""), ("lead(s, 2)", ""), ("ntile(2)", ""),
    ("sum(v)", ""), ("max(d)", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"), ("count(*)", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
    ("first_value(k)", ""), ("sum(v)", " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"), ("cume_dist()", ""),
    ("percent_rank()", ""), ("nth_value(v, 2)", ""), ("last_value(s) IGNORE NULLS", ""), ("lag(k, 1, 0)", ""),
    ("min(v)", " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"), ("avg(d)", " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"),
    ("count(k)", None), ("sum(d)", None), ("max(s)", None),
]
"""Calls with their frames; None stands for a window without an order."""
# fmt: on
