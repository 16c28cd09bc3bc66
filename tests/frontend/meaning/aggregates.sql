-- count
SELECT k, count(*) AS n, count(v) AS nv, count(1) AS n1 FROM t GROUP BY k

-- sums
SELECT k, sum(v) AS sv, sum(d) AS sd, avg(v) AS av, avg(d) AS ad, min(s) AS lo, max(ts) AS hi FROM t GROUP BY k

-- nested in expressions
SELECT k, sum(v) / count(*) AS x, 1 + max(v) - min(v) AS spread, concat(k, ':', count(*)) AS label FROM t GROUP BY k

-- the same aggregate twice
SELECT k, sum(v) AS a, sum(v) + 1 AS b, SUM(v) AS c FROM t GROUP BY k

-- group by an expression
SELECT k % 2 AS parity, count(*) AS n FROM t GROUP BY k % 2

-- group by an expression used further
SELECT concat('p', k % 2) AS label, (k % 2) + 1 AS more, sum(v) AS sv FROM t GROUP BY k % 2

-- group by an alias
SELECT upper(s) AS u, count(*) AS n FROM t GROUP BY u

-- group by an alias used in an expression
SELECT k + 1 AS x, count(*) AS n FROM t GROUP BY x, x % 2

-- an input column comes before an alias in group by
SELECT max(v) AS k, count(*) AS n FROM t GROUP BY k

-- group by ordinals
SELECT s, k + 1 AS x, sum(v) AS sv FROM t GROUP BY 1, 2

-- group by a parenthesized expression
SELECT k + v AS x, count(*) AS n FROM t GROUP BY (k + v)

-- group by another spelling of a function
SELECT UPPER(s) AS x, count(*) AS n FROM t GROUP BY upper(s)

-- group by all
SELECT s, k % 2 AS p, sum(v) + 1 AS x FROM t GROUP BY ALL

-- group by all without aggregates
SELECT s, k FROM t GROUP BY ALL

-- group by all without keys
SELECT count(*) AS n, sum(v) AS sv FROM e GROUP BY ALL

-- group by all with literals
SELECT 'x' AS x, 1 AS one, count(*) AS n FROM e GROUP BY ALL

-- group by a constant
SELECT 'all' AS x, count(*) AS n FROM t GROUP BY 'all'

-- group by without aggregates
SELECT k, s FROM t GROUP BY k, s

-- group by a struct's field
SELECT st.x, st.deep.z, count(*) AS n FROM t GROUP BY st.x, st.deep.z

-- group by a struct, select its field
SELECT st.x, count(*) AS n FROM t GROUP BY st

-- group by the same twice
SELECT k, count(*) AS n FROM t GROUP BY k, t.k, k

-- keys not selected
SELECT count(*) AS n FROM t GROUP BY k, s

-- constants next to aggregates
SELECT 'x' AS x, k, 1 + 1 AS two, count(*) AS n FROM t GROUP BY k

-- global
SELECT count(*) AS n, sum(v) AS sv, max(s) AS hi FROM t

-- global over nothing
SELECT count(*) AS n, sum(v) AS sv, max(k) AS hi, 7 AS seven FROM e

-- global with where
SELECT count(*) AS n FROM t WHERE v > 100

-- distinct aggregates
SELECT k, count(DISTINCT v) AS n, count(DISTINCT v, s) AS m, sum(DISTINCT v) AS sv FROM t GROUP BY k

-- filtered aggregates
SELECT k, count(*) FILTER (WHERE v > 1) AS n, sum(v) FILTER (WHERE s = 'x' AND b) AS sv, max(s) AS hi FROM t GROUP BY k

-- boolean aggregates
SELECT k, bool_and(v > 1) AS al, every(b) AS ev, any(b) AS an, some(v > 2) AS so, bool_or(b) AS bo FROM t GROUP BY k

-- conditional sums
SELECT s, sum(CASE WHEN v > 1 THEN 1 ELSE 0 END) AS n, sum(if(b, v, 0)) AS sv, count_if(v > 1) AS c FROM t GROUP BY s

-- statistics
SELECT k, round(stddev(v), 6) AS sd, round(var_pop(v), 6) AS vp, percentile(v, 0.5) AS p, median(v) AS md FROM t GROUP BY k

-- percentiles within group
SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY v) AS c, percentile_disc(0.25) WITHIN GROUP (ORDER BY v DESC) AS d FROM t GROUP BY k

-- lists
SELECT k, sort_array(collect_list(v)) AS l, sort_array(collect_set(s)) AS st, size(array_agg(id)) AS n FROM t GROUP BY k

-- listagg
SELECT k, listagg(s, ',') WITHIN GROUP (ORDER BY s, id) AS l, string_agg(DISTINCT s, '-') WITHIN GROUP (ORDER BY s) AS d FROM t GROUP BY k

-- extremes by another column
SELECT k, max_by(s, id) AS a, min_by(v, id) AS b, max(struct(id, s)).s AS c FROM t GROUP BY k

-- first and last of one value
SELECT k, first(k) AS a, any_value(k) AS b, last(k, true) AS c, first_value(k) IGNORE NULLS AS d FROM t GROUP BY k

-- bits and approximations
SELECT k, bit_and(v) AS a, bit_or(id) AS o, bit_xor(id) AS x, approx_count_distinct(v) AS n FROM t GROUP BY k

-- aggregates of structs and lambdas
SELECT k, max(named_struct('v', v, 'id', id)) AS m, sum(aggregate(arr, 0, (a, x) -> a + coalesce(x, 0))) AS total FROM t GROUP BY k

-- a lambda over a group key
SELECT k, transform(array(1, 2), x -> x + k) AS moved, count(*) AS n FROM t GROUP BY k

-- having
SELECT k, sum(v) AS sv FROM t GROUP BY k HAVING count(*) > 3

-- having by an alias
SELECT k, sum(v) AS sv FROM t GROUP BY k HAVING sv > 3 AND k > 1

-- a group key comes before an alias in having
SELECT k AS x, sum(v) AS k FROM t GROUP BY k HAVING k > 2

-- an alias comes before a column that is not grouped in having
SELECT max(v) AS v, k FROM t GROUP BY k HAVING v > 4

-- an aggregate's argument is an input column in having
SELECT k, -sum(v) AS v FROM t GROUP BY k HAVING sum(v) > 3

-- having without group by
SELECT sum(v) AS sv FROM t HAVING count(*) > 1000

-- having an expression of a key
SELECT k % 2 AS p, count(*) AS n FROM t GROUP BY k % 2 HAVING k % 2 = 0

-- having what is not selected
SELECT k FROM t GROUP BY k, s HAVING max(v) > 4 AND s IS NOT NULL

-- aggregates of aggregates
SELECT n, count(*) AS m FROM (SELECT k, count(*) AS n FROM t GROUP BY k) GROUP BY n

-- aggregate over a join
SELECT u.w, count(*) AS n, sum(t.v) AS sv FROM t JOIN u ON t.k = u.k GROUP BY u.w

-- aggregate over using
SELECT k, count(*) AS n, max(u.w) AS w FROM t FULL JOIN u USING (k) GROUP BY k

-- lateral alias of an aggregate
SELECT k, sum(v) AS sv, sv + 1 AS more, sv / count(*) AS mean FROM t GROUP BY k

-- an aggregate and its alias as input
SELECT k + 1 AS x, x + sum(v) AS y FROM t GROUP BY k

-- distinct over an aggregate
SELECT DISTINCT count(*) AS n FROM t GROUP BY k

-- aggregate of nothing selected above
SELECT 1 AS one FROM (SELECT count(*) AS n FROM t)

-- number of groups
SELECT count(*) AS groups FROM (SELECT k, s FROM t GROUP BY k, s)

-- filter above a group
SELECT * FROM (SELECT k, s, count(*) AS n FROM t GROUP BY k, s) WHERE k = 2 AND n > 1

-- filter above a global aggregate
SELECT * FROM (SELECT count(*) AS n, 1 AS one FROM e) WHERE one = 2

-- rollup
SELECT k, s, count(*) AS n FROM t GROUP BY ROLLUP (k, s)

-- with rollup
SELECT k, s, count(*) AS n FROM t GROUP BY k, s WITH ROLLUP

-- cube
SELECT k, b, count(*) AS n, grouping(k) AS g FROM t GROUP BY CUBE (k, b)

-- grouping sets
SELECT k, s, count(*) AS n, grouping_id(k, s) AS g FROM t GROUP BY GROUPING SETS ((k), (s), ())

-- rollup over nothing
SELECT k, count(*) AS n FROM e GROUP BY ROLLUP (k)

-- the empty set alone over nothing
SELECT count(*) AS n FROM e GROUP BY GROUPING SETS (())

-- rollup of an expression
SELECT k % 2 AS p, s, sum(k) AS sk, grouping(s) AS g FROM t GROUP BY ROLLUP (k % 2, s)

-- a key and a rollup
SELECT k, s, count(*) AS n FROM t GROUP BY k, ROLLUP (s)

-- keys before grouping sets
SELECT k, s, count(*) AS n FROM t GROUP BY k, s GROUPING SETS ((k, s), k)

-- cube of units
SELECT k, s, b, count(*) AS n, grouping_id() AS g FROM t GROUP BY CUBE ((k, s), b)

-- the same grouping set twice
SELECT k, count(*) AS n FROM t GROUP BY GROUPING SETS ((k), (k))

-- having over a rollup
SELECT k, count(*) AS n FROM t GROUP BY ROLLUP (k) HAVING grouping(k) = 1 OR n > 3

-- window over a rollup
SELECT k, count(*) AS n, rank() OVER (ORDER BY count(*), k) AS r FROM t GROUP BY ROLLUP (k)

-- rollup by an alias with nulls filled in
SELECT coalesce(upper(s), 'all') AS u, count(DISTINCT k) AS n FROM t GROUP BY upper(s) WITH ROLLUP

-- pivot
SELECT * FROM (SELECT k, s, v FROM t) PIVOT (sum(v) FOR s IN ('x', 'y'))

-- unpivot
SELECT * FROM (SELECT id, k, v FROM t) UNPIVOT (n FOR name IN (k, v))

-- group by a time window
SELECT window(ts, '1 day').start AS day, count(*) AS n FROM t GROUP BY window(ts, '1 day')

-- group by a sliding window
SELECT window.start AS s, count(*) AS n, sum(v) AS sv FROM t GROUP BY window(ts, '1 day', '12 hours')

-- filter over a sliding window
SELECT start, count(*) AS n FROM (SELECT window(ts, '1 day', '12 hours').start AS start, v FROM t) WHERE start > TIMESTAMP'2020-01-01 06:00:00' AND v > 1 GROUP BY start

-- pivot of several aggregates
SELECT * FROM (SELECT k, s, v, d FROM t) PIVOT (sum(v) AS sv, count(*) AS n, max(d) FOR s IN ('x' AS xx, 'y', NULL)) p WHERE p.k > 1

-- pivot of counts
SELECT * FROM (SELECT k, s, v FROM t) PIVOT (count(v) FOR s IN ('x', 'nothing'))

-- pivot of lists and counts
SELECT k, size(a_l) AS a, a_n, b_n FROM (SELECT k, s, v FROM t) PIVOT (collect_list(v) AS l, count(*) AS n FOR s IN ('x' AS a, 'nothing' AS b))

-- pivot of strings
SELECT * FROM (SELECT k, s, day FROM t) PIVOT (min(day) AS lo, count(*) AS n FOR s IN ('x', 'y'))

-- pivot of two columns
SELECT * FROM (SELECT k, s, b, v FROM t) PIVOT (max(v) + 1 AS m FOR (s, b) IN (('x', true) AS x1, ('y', false)))

-- pivot over everything
SELECT * FROM (SELECT s, v FROM t) PIVOT (sum(v) FOR s IN ('x', 'y'))

-- pivot over nothing
SELECT * FROM (SELECT k AS g, v, 1 AS one FROM e) PIVOT (sum(v) FOR g IN (1, 2))

-- pivot of a table and a join
SELECT p.x, u.w FROM (SELECT k, s, v FROM t) PIVOT (sum(v) FOR s IN ('x', 'y')) AS p JOIN u ON u.k = p.k

-- unpivot with nulls and names
SELECT * FROM (SELECT id, k, v FROM t) UNPIVOT INCLUDE NULLS (n FOR name IN (k AS kk, V AS vv)) AS z WHERE z.id > 3

-- unpivot of pairs
SELECT * FROM (SELECT id, k, v FROM t) UNPIVOT ((x, y) FOR n IN ((k, v) AS kv, (v, k)))

-- unpivot of other types
SELECT * FROM (SELECT id, k, v, d FROM t) UNPIVOT (n FOR name IN (K, v, d))

-- unpivot of a table keeps its name
SELECT sales.id, what, x FROM shop.sales UNPIVOT (x FOR what IN (k, amount))
