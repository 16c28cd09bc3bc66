-- row number
SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS rn FROM t

-- ranks
SELECT id, rank() OVER (PARTITION BY k ORDER BY v) AS r, dense_rank() OVER (PARTITION BY k ORDER BY v) AS d, percent_rank() OVER (PARTITION BY k ORDER BY v) AS p FROM t

-- different partitions
SELECT id, sum(v) OVER (PARTITION BY k) AS a, sum(v) OVER (PARTITION BY s) AS b, count(*) OVER () AS n FROM t

-- partition by an expression
SELECT id, sum(v) OVER (PARTITION BY k % 2, upper(s)) AS a FROM t

-- running sums
SELECT id, sum(v) OVER (PARTITION BY k ORDER BY id) AS a, sum(v) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS b, sum(v) OVER (ORDER BY v) AS c FROM t

-- range frames
SELECT id, sum(v) OVER (ORDER BY id RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS a, count(*) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) AS b FROM t

-- lag and lead
SELECT id, lag(v) OVER (PARTITION BY k ORDER BY id) AS a, lead(v, 2, -1) OVER (PARTITION BY k ORDER BY id) AS b, lag(v) IGNORE NULLS OVER (PARTITION BY k ORDER BY id) AS c FROM t

-- first and last
SELECT id, first_value(v) OVER (PARTITION BY k ORDER BY id) AS a, last_value(v) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS b, nth_value(id, 2) OVER (PARTITION BY k ORDER BY id) AS c FROM t

-- order directions
SELECT id, row_number() OVER (PARTITION BY k ORDER BY v DESC NULLS FIRST, id DESC) AS a, row_number() OVER (PARTITION BY k ORDER BY v NULLS LAST, id) AS b FROM t

-- in expressions
SELECT id, v - avg(v) OVER (PARTITION BY k) AS diff, v / sum(v) OVER (PARTITION BY k) AS share, coalesce(lag(v) OVER (ORDER BY id), 0) AS before FROM t

-- the same window twice
SELECT id, sum(v) OVER (PARTITION BY k) AS a, sum(v) OVER (PARTITION BY k) + 1 AS b FROM t

-- named window
SELECT id, sum(v) OVER w AS a, row_number() OVER w AS b FROM t WINDOW w AS (PARTITION BY k ORDER BY id)

-- named window in parentheses
SELECT id, sum(v) OVER (w) AS a FROM t WINDOW w AS (PARTITION BY k ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)

-- two named windows
SELECT id, sum(v) OVER w AS a, count(*) OVER x AS b FROM t WINDOW w AS (PARTITION BY k), x AS (PARTITION BY s ORDER BY id)

-- distribute by
SELECT id, sum(v) OVER (DISTRIBUTE BY k SORT BY id) AS a FROM t

-- filtered window aggregate
SELECT id, count(*) FILTER (WHERE v > 1) OVER (PARTITION BY k) AS n FROM t

-- over aggregates
SELECT k, sum(v) AS sv, sum(sum(v)) OVER () AS total, rank() OVER (ORDER BY sum(v) DESC, k) AS r FROM t GROUP BY k

-- over aggregates by a key
SELECT k, s, count(*) AS n, sum(count(*)) OVER (PARTITION BY k) AS nk, count(*) / sum(count(*)) OVER (PARTITION BY s) AS share FROM t GROUP BY k, s

-- over a group expression
SELECT k % 2 AS p, s, row_number() OVER (PARTITION BY k % 2 ORDER BY s, max(id)) AS rn FROM t GROUP BY k % 2, s

-- lateral alias in a select with windows
SELECT id, sum(v) OVER (PARTITION BY k) AS a, a + 1 AS b FROM t

-- filter above a window
SELECT * FROM (SELECT id, k, v, sum(v) OVER (PARTITION BY k) AS a FROM t) WHERE k = 2 AND v > 1

-- top row of each group
SELECT id, k, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v DESC, id) AS rn FROM t) WHERE rn = 1

-- top rows of each group, with the number
SELECT * FROM (SELECT id, k, row_number() OVER (PARTITION BY k ORDER BY v, id) AS rn FROM t) WHERE rn <= 2 AND id > 3

-- top rows, the bound first
SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS rn FROM t) WHERE 3 > rn

-- top row of another window
SELECT id, total FROM (SELECT id, k, sum(v) OVER (PARTITION BY k) AS total, row_number() OVER (PARTITION BY k ORDER BY id) AS rn FROM t) WHERE rn = 1

-- top rows of all
SELECT id FROM (SELECT id, row_number() OVER (ORDER BY v DESC, id) AS rn FROM t) WHERE rn < 4

-- top rows filtered by the partition
SELECT id, rn FROM (SELECT id, k, row_number() OVER (PARTITION BY k ORDER BY id) AS rn FROM t) WHERE rn = 1 AND k = 2

-- second row
SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS rn FROM t) WHERE rn = 2

-- between rows
SELECT id, rn FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS rn FROM t) WHERE rn BETWEEN 2 AND 3

-- rank at most
SELECT id, r FROM (SELECT id, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM t) WHERE r <= 2

-- row numbers are counted before an outer filter
SELECT id FROM (SELECT id, v, row_number() OVER (PARTITION BY k ORDER BY id) AS rn FROM t) WHERE v > 1 AND rn = 1

-- qualify
SELECT id, k FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC, id) = 1

-- qualify by an alias
SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS rn FROM t QUALIFY rn <= 2

-- qualify over a group
SELECT k, count(*) AS n, rank() OVER (ORDER BY count(*) DESC, k) AS r FROM t GROUP BY k QUALIFY r <= 2

-- qualify and where
SELECT id FROM t WHERE v > 1 QUALIFY count(*) OVER (PARTITION BY k) > 2 AND id > 5

-- window of structs
SELECT id, max(struct(v, id)) OVER (PARTITION BY st.x) AS m, lag(st.y) OVER (PARTITION BY k ORDER BY id) AS y FROM t

-- collect in a window
SELECT id, sort_array(collect_list(v) OVER (PARTITION BY k)) AS l FROM t

-- ntile and cume_dist
SELECT id, ntile(3) OVER (PARTITION BY k ORDER BY id) AS n, cume_dist() OVER (PARTITION BY k ORDER BY v) AS c FROM t

-- distinct with a window
SELECT DISTINCT k, sum(v) OVER (PARTITION BY k) AS sv FROM t

-- window over a union
SELECT k, count(*) OVER (PARTITION BY k) AS n FROM (SELECT k FROM t UNION ALL SELECT k FROM u)

-- sessions by gaps and islands
WITH marked AS (
  SELECT id, k, ts, CASE WHEN ts > lag(ts) OVER (PARTITION BY k ORDER BY ts, id) + INTERVAL 1 HOUR THEN 1 ELSE 0 END AS new FROM t
)
SELECT id, k, sum(new) OVER (PARTITION BY k ORDER BY ts, id ROWS UNBOUNDED PRECEDING) AS session FROM marked

-- sliding windows of rows
SELECT id, window(ts, '1 day', '8 hours') AS w FROM t

-- sliding windows that nobody reads
SELECT count(*) AS n FROM (SELECT window(ts, '1 day', '8 hours') AS w, k FROM t) WHERE k > 1

-- sliding windows, filtered
SELECT id FROM (SELECT id, window(ts, '1 day', '8 hours') AS w FROM t) WHERE w.start > TIMESTAMP'2020-01-01 12:00:00'

-- two bounds of a window
SELECT id, window(ts, '1 hour').start AS a, window(ts, '1 hour').end AS b FROM t

-- window with a start time
SELECT window.start AS s, count(*) AS n FROM t GROUP BY window(ts, '1 day', '1 day', '3 hours')

-- window and other keys
SELECT k, window(ts, '1 day') AS w, sum(v) AS s FROM t GROUP BY k, window(ts, '1 day') HAVING window.start IS NOT NULL AND count(*) > 1

-- window_time
SELECT id, window_time(window(ts, '1 hour')) AS at FROM t

-- windows of windows
SELECT window(window_time(w), '1 day') AS d, sum(n) AS n FROM (SELECT window(ts, '1 hour') AS w, count(*) AS n FROM t GROUP BY 1) GROUP BY 1

-- sessions
SELECT session_window(ts, '12 hours') AS w, count(*) AS n, sum(v) AS s FROM t GROUP BY 1

-- sessions by key
SELECT k, session_window.start AS a, session_window.end AS b, max(v) AS m FROM t GROUP BY k, session_window(ts, '6 hours')

-- sessions of other lengths
SELECT s, count(*) AS n, session_window(ts, CASE WHEN v > 1 THEN '1 day' WHEN v = 1 THEN '0 seconds' ELSE '1 hour' END) AS w FROM t GROUP BY s, w

-- sessions with a computed key and HAVING
SELECT k % 2 AS p, session_window.end AS b FROM t GROUP BY 1, session_window(ts, '1 day') HAVING count(*) > 1

-- sessions outside of GROUP BY | fallback: session_window() that is no key of GROUP BY
SELECT id, session_window(ts, '1 hour') AS w FROM t

-- windows in WHERE | fallback: window() in WHERE
SELECT id FROM t WHERE window(ts, '1 hour').start > TIMESTAMP'2020-01-01 12:00:00'
