-- in
SELECT id FROM t WHERE k IN (SELECT k FROM u)

-- in with an expression
SELECT id FROM t WHERE k + 1 IN (SELECT k FROM u WHERE w = 'x') AND v > 1

-- not in with nulls
SELECT id FROM t WHERE k NOT IN (SELECT k FROM u)

-- not in without nulls
SELECT id FROM t WHERE k NOT IN (SELECT k FROM u WHERE k IS NOT NULL)

-- exists
SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM u WHERE u.k = a.k)

-- exists with more
SELECT id FROM t a WHERE EXISTS (SELECT * FROM u WHERE u.k = a.k AND u.w > a.s AND u.n > 1) AND v > 1

-- not exists
SELECT id FROM t a WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = a.k AND w = 'x')

-- exists without correlation
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE w = 'x')

-- not exists without correlation
SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM e)

-- exists or | fallback: a subquery in an expression
SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM u WHERE u.k = a.k) OR v > 4

-- in correlated
SELECT id FROM t WHERE v IN (SELECT u.k FROM u WHERE u.w = s)

-- in over a group
SELECT id FROM t WHERE k IN (SELECT k FROM u GROUP BY k HAVING count(*) > 1)

-- in over a union
SELECT id FROM t WHERE k IN (SELECT k FROM u UNION ALL SELECT 4)

-- in over a cte
WITH x AS (SELECT k FROM u WHERE w = 'x') SELECT id FROM t WHERE k IN (SELECT k FROM x)

-- in of several columns
SELECT id FROM t WHERE (k, s) IN (SELECT k, w FROM u)

-- exists in a join
SELECT a.id, sales.amount FROM t a JOIN shop.sales ON sales.id = a.id WHERE EXISTS (SELECT 1 FROM u WHERE u.k = a.k AND u.k = sales.k)

-- exists under a group
SELECT k, count(*) AS n FROM t a WHERE EXISTS (SELECT 1 FROM u WHERE u.k = a.k) GROUP BY k

-- an inner name hides an outer one
SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM u WHERE k = a.k AND w = s)

-- exists of the same table
SELECT a.id FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.k = a.k AND b.id <> a.id AND b.v > a.v)

-- exists with a group | fallback: correlated subquery
SELECT id FROM t a WHERE EXISTS (SELECT count(*) FROM u WHERE u.k = a.k HAVING count(*) > 1)

-- exists of a limit
SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM u WHERE u.k = a.k LIMIT 1)

-- scalar
SELECT id, v - (SELECT min(v) FROM t) AS more FROM t

-- scalar in where
SELECT id FROM t WHERE v > (SELECT avg(v) FROM t)

-- two scalars
SELECT id, (SELECT max(v) FROM t) - (SELECT min(k) FROM u) AS x FROM t WHERE v > (SELECT avg(v) FROM t)

-- scalar over nothing
SELECT id, (SELECT max(k) FROM e) AS x, (SELECT count(*) FROM e) AS n FROM t

-- scalar with an aggregate around
SELECT k, sum(v) / (SELECT sum(v) FROM t) AS share FROM t GROUP BY k

-- scalar in having
SELECT k, sum(v) AS sv FROM t GROUP BY k HAVING sum(v) > (SELECT avg(v) FROM t)

-- scalar of one row that is not an aggregate | fallback: scalar subquery
SELECT id, (SELECT k FROM u ORDER BY n, w, k LIMIT 1) AS x FROM t

-- correlated scalar
SELECT id, (SELECT count(*) FROM u WHERE u.k = a.k) AS n FROM t a

-- correlated scalar in where
SELECT id FROM t a WHERE v > (SELECT avg(b.v) FROM t b WHERE b.k = a.k)

-- subquery in a case | fallback: a subquery in an expression
SELECT id, CASE WHEN k IN (SELECT k FROM u) THEN 1 ELSE 0 END AS known FROM t

-- correlated scalar inside a derived table
SELECT x.k, count(*) AS n FROM (SELECT k FROM t a WHERE v > (SELECT avg(b.v) FROM t b WHERE b.k = a.k)) x GROUP BY x.k

-- correlated scalar with an expression around
SELECT id, v - (SELECT coalesce(max(n), 0) + count(*) FROM u WHERE u.k = a.k AND w = 'x') AS x FROM t a

-- correlated scalar that is null-safe
SELECT id, (SELECT sum(n) FROM u WHERE u.k <=> a.k) AS x FROM t a

-- correlated scalar of an inequality | fallback: correlated subquery
SELECT id, (SELECT count(*) FROM u WHERE u.k < a.k) AS x FROM t a

-- correlated scalar that counts a list | fallback: correlated subquery
SELECT id, (SELECT size(collect_list(n)) FROM u WHERE u.k = a.k) AS x FROM t a

-- correlated scalar over an expression of both
SELECT id FROM t a WHERE v >= (SELECT 0.5 * avg(b.v) FROM t b WHERE b.k + 1 = a.k + 1 AND b.s = a.s)

-- correlated scalar in an aggregate
SELECT k, sum((SELECT count(*) FROM u WHERE u.k = a.k)) AS n FROM t a GROUP BY k

-- not in over nothing
SELECT id FROM t WHERE k NOT IN (SELECT k FROM e)

-- not in correlated
SELECT id FROM t WHERE v NOT IN (SELECT u.k FROM u WHERE u.w = s)

-- not of in
SELECT id FROM t WHERE NOT (k IN (SELECT k FROM u WHERE k > 1))

-- not in of several columns | fallback: NOT IN of several columns
SELECT id FROM t WHERE (k, s) NOT IN (SELECT k, w FROM u)

-- nested exists
SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM u WHERE u.k = a.k AND EXISTS (SELECT 1 FROM shop.sales x WHERE x.k = u.k))

-- in with a window inside
SELECT id FROM t WHERE k IN (SELECT k FROM (SELECT k, row_number() OVER (ORDER BY n, k, w) AS rn FROM u) WHERE rn < 4)

-- in with a star
SELECT id FROM t WHERE k IN (SELECT * FROM (SELECT k FROM u))

-- scalar without from
SELECT (SELECT max(id) FROM t) AS hi, 1 AS one

-- in a join condition | fallback: a subquery in an expression
SELECT a.id, u.w FROM t a LEFT JOIN u ON a.k = u.k AND u.k IN (SELECT k FROM e)
