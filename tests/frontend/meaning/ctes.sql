-- one
WITH x AS (SELECT k, v FROM t WHERE v > 1) SELECT k, count(*) AS n FROM x GROUP BY k

-- one after another
WITH x AS (SELECT k, v FROM t), y AS (SELECT k, sum(v) AS sv FROM x GROUP BY k) SELECT x.k, y.sv FROM x JOIN y ON x.k = y.k

-- used twice
WITH x AS (SELECT k, count(*) AS n FROM t GROUP BY k) SELECT a.k, b.n FROM x a JOIN x b ON a.n = b.n

-- column names
WITH x(a, b) AS (SELECT k, count(*) FROM t GROUP BY k) SELECT a, b FROM x WHERE b > 1

-- hides a table
WITH t AS (SELECT k, w FROM u) SELECT * FROM t

-- its own definition reads the table
WITH t AS (SELECT id, k FROM t WHERE k = 1) SELECT * FROM t

-- hidden by a later one
WITH x AS (SELECT 1 AS n), y AS (WITH x AS (SELECT 2 AS n) SELECT n FROM x) SELECT x.n, y.n AS m FROM x, y

-- nested
WITH x AS (WITH y AS (SELECT k FROM t WHERE k > 1) SELECT k FROM y) SELECT k FROM x

-- in a derived table
SELECT q.k FROM (WITH y AS (SELECT k FROM u) SELECT k FROM y) q

-- in front of a union
WITH x AS (SELECT k FROM u) SELECT k FROM x UNION ALL SELECT k FROM x

-- case of names
WITH Abc AS (SELECT k FROM u) SELECT ABC.k, q.K AS k2 FROM aBc JOIN abc Q ON q.k = abc.k

-- not used
WITH x AS (SELECT k FROM u) SELECT id FROM t

-- of constants
WITH x AS (SELECT 1 AS k UNION ALL SELECT 2), y AS (SELECT 'c' AS c) SELECT t.id, y.c FROM t JOIN x ON t.k = x.k CROSS JOIN y

-- a schema's table of the same name
WITH sales AS (SELECT 1 AS id) SELECT a.id, b.amount FROM sales a JOIN shop.sales b ON a.id = b.id

-- in parentheses
WITH x AS (SELECT k FROM u) (SELECT k FROM x)

-- star
WITH x AS (SELECT * FROM u), y AS (SELECT *, 1 AS one FROM x) SELECT * FROM y

-- a window inside
WITH r AS (SELECT *, row_number() OVER (PARTITION BY k ORDER BY id DESC) AS rn FROM t), last AS (SELECT id, k, s FROM r WHERE rn = 1) SELECT last.*, u.w FROM last LEFT JOIN u USING (k)

-- a pivot inside sees the ones before it
WITH x AS (SELECT k, v FROM t WHERE v > 1), y AS (SELECT * FROM x PIVOT (count(*) AS n FOR v IN (2, 5))) SELECT y.`2` + 1 AS m FROM y WHERE y.k > 1

-- an unpivot of a nested one
WITH x AS (WITH z AS (SELECT k, v FROM t) SELECT k, v FROM z) SELECT q.n FROM (WITH w AS (SELECT * FROM x) SELECT * FROM w UNPIVOT (n FOR name IN (k, v))) q

-- an unpivot inside is told apart from a later name
WITH x AS (SELECT 1 AS a, 2 AS b), y AS (SELECT * FROM x) SELECT q.n FROM (WITH x AS (SELECT k AS z FROM u) SELECT n, x.z FROM y UNPIVOT (n FOR name IN (a, b)) CROSS JOIN x) q

-- recursive
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT r.n, u.w FROM r JOIN u ON u.k = r.n

-- recursive over relations, read twice
WITH RECURSIVE r(k, deep) AS (SELECT k, 0 FROM t UNION ALL SELECT u.k, deep + 1 FROM r JOIN u ON u.k > r.k AND deep < 3) SELECT a.k, b.deep FROM r a JOIN r b ON b.k = a.k AND b.deep = a.deep + 1

-- recursive inside a CTE, with one that is not
WITH x AS (WITH RECURSIVE z AS (SELECT DISTINCT k FROM t), r AS (SELECT k, 'a' AS p FROM z UNION ALL SELECT k + 1, p || 'b' FROM r WHERE length(p) < 3 AND k IN (SELECT k FROM u)) SELECT k, p FROM r) SELECT x.p, count(*) AS n FROM x LEFT JOIN u ON u.k = x.k GROUP BY x.p

-- recursive, with a step that is not linear | fallback: the recursive r is a UNION ALL whose step is not linear: Spark has it see the last step's rows only
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT a.n + b.n FROM r a JOIN r b ON a.n = b.n WHERE a.n < 9) SELECT r.n, u.w FROM r JOIN u ON u.k = r.n
