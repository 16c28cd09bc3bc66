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

-- exists or
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

-- exists with a group
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

-- scalar of one row that is not an aggregate
SELECT id, (SELECT k FROM u ORDER BY n, w, k LIMIT 1) AS x FROM t

-- correlated scalar
SELECT id, (SELECT count(*) FROM u WHERE u.k = a.k) AS n FROM t a

-- correlated scalar in where
SELECT id FROM t a WHERE v > (SELECT avg(b.v) FROM t b WHERE b.k = a.k)

-- subquery in a case
SELECT id, CASE WHEN k IN (SELECT k FROM u) THEN 1 ELSE 0 END AS known FROM t

-- correlated scalar inside a derived table
SELECT x.k, count(*) AS n FROM (SELECT k FROM t a WHERE v > (SELECT avg(b.v) FROM t b WHERE b.k = a.k)) x GROUP BY x.k

-- correlated scalar with an expression around
SELECT id, v - (SELECT coalesce(max(n), 0) + count(*) FROM u WHERE u.k = a.k AND w = 'x') AS x FROM t a

-- correlated scalar that is null-safe
SELECT id, (SELECT sum(n) FROM u WHERE u.k <=> a.k) AS x FROM t a

-- correlated scalar of an inequality
SELECT id, (SELECT count(*) FROM u WHERE u.k < a.k) AS x FROM t a

-- correlated scalar that counts a list
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

-- not in of several columns
SELECT id FROM t WHERE (k, s) NOT IN (SELECT k, w FROM u)

-- nested exists
SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM u WHERE u.k = a.k AND EXISTS (SELECT 1 FROM shop.sales x WHERE x.k = u.k))

-- in with a window inside
SELECT id FROM t WHERE k IN (SELECT k FROM (SELECT k, row_number() OVER (ORDER BY n, k, w) AS rn FROM u) WHERE rn < 4)

-- in with a star
SELECT id FROM t WHERE k IN (SELECT * FROM (SELECT k FROM u))

-- scalar without from
SELECT (SELECT max(id) FROM t) AS hi, 1 AS one

-- in a join condition
SELECT a.id, u.w FROM t a LEFT JOIN u ON a.k = u.k AND u.k IN (SELECT k FROM e)

-- in as a value
SELECT id, k IN (SELECT k FROM u) AS x, v IN (SELECT k FROM u WHERE k IS NOT NULL) AS y FROM t

-- not in as a value
SELECT id, k NOT IN (SELECT k FROM u) AS x, k NOT IN (SELECT k FROM u WHERE k IS NOT NULL) AS y, k NOT IN (SELECT k FROM e) AS z FROM t

-- in or
SELECT id FROM t WHERE k IN (SELECT k FROM u) OR v = 2

-- not in or
SELECT id FROM t WHERE k NOT IN (SELECT k FROM u) OR v = 2

-- not in of no nulls or
SELECT id FROM t WHERE k NOT IN (SELECT k FROM u WHERE k > 1) OR v = 2

-- not over in and more
SELECT id FROM t WHERE NOT (k IN (SELECT k FROM u) AND v > 1)

-- not over in or more
SELECT id FROM t WHERE NOT (k IN (SELECT k FROM u WHERE k < 3) OR v > 1)

-- in that is null
SELECT id FROM t WHERE (k IN (SELECT k FROM u)) IS NULL

-- in of several columns or
SELECT id FROM t WHERE (k, s) IN (SELECT k, w FROM u) OR v = 2

-- not in of several columns or
SELECT id FROM t WHERE (k, s) NOT IN (SELECT k, w FROM u) OR v = 2

-- correlated in or
SELECT id FROM t a WHERE v IN (SELECT u.k FROM u WHERE u.w = a.s) OR s = 'Zed'

-- correlated not in as a value
SELECT id, v NOT IN (SELECT u.k FROM u WHERE u.w = a.s) AS x FROM t a

-- exists as a value
SELECT id, EXISTS (SELECT 1 FROM u WHERE u.k = a.k) AS x, NOT EXISTS (SELECT 1 FROM u WHERE u.k < a.k) AS y FROM t a

-- exists of nothing as a value
SELECT id, EXISTS (SELECT 1 FROM e) AS x, EXISTS (SELECT 1 FROM u WHERE w = 'x') AS y FROM t

-- two exists in one condition
SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM u WHERE u.k = a.k) AND v > 1 OR EXISTS (SELECT 1 FROM u WHERE u.w = a.s)

-- exists of an aggregate is always true
SELECT id FROM t a WHERE EXISTS (SELECT count(*) FROM u WHERE u.k = a.k)

-- exists of a group
SELECT id, EXISTS (SELECT u.k, count(*) FROM u WHERE u.k = a.k GROUP BY u.k HAVING count(*) > 1) AS x FROM t a

-- exists in an aggregate
SELECT k, count_if(EXISTS (SELECT 1 FROM u WHERE u.k = a.k AND u.w > a.s)) AS n FROM t a GROUP BY k

-- exists in a filter clause
SELECT count(*) FILTER (WHERE EXISTS (SELECT 1 FROM u WHERE u.k = a.k)) AS n FROM t a

-- exists in having
SELECT k, sum(v) AS sv FROM t a GROUP BY k HAVING EXISTS (SELECT 1 FROM u WHERE u.k = a.k)

-- in in having
SELECT k, sum(v) AS sv FROM t GROUP BY k HAVING k IN (SELECT k FROM u) OR count(*) > 9

-- an aggregate in a list in having
SELECT k, count(*) AS n FROM t GROUP BY k HAVING count(*) IN (SELECT id FROM shop.sales)

-- correlated scalar in having
SELECT k, sum(v) AS sv FROM t a GROUP BY k HAVING sum(v) > (SELECT min(u.n) FROM u WHERE u.k = a.k)

-- exists of a union
SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM u WHERE u.k = a.k UNION ALL SELECT 2 FROM shop.sales x WHERE x.id = a.id)

-- correlated in of a limit
SELECT id FROM t a WHERE v IN (SELECT x.id FROM shop.sales x WHERE x.k = a.k ORDER BY x.id LIMIT 2)

-- correlated in of groups
SELECT id FROM t a WHERE v IN (SELECT max(x.id) FROM shop.sales x WHERE x.k = a.k GROUP BY x.`a b`)

-- correlated not in of an aggregate
SELECT id FROM t a WHERE v NOT IN (SELECT max(x.id) FROM shop.sales x WHERE x.k = a.k)

-- correlated scalar that is no aggregate
SELECT id, (SELECT x.amount FROM shop.sales x WHERE x.id = a.id) AS x FROM t a

-- correlated scalar of the first row
SELECT id, (SELECT x.amount FROM shop.sales x WHERE x.k = a.k ORDER BY x.amount DESC, x.id LIMIT 1) AS x FROM t a

-- correlated scalar of a derived table
SELECT id, (SELECT max(y.n) FROM (SELECT n FROM u WHERE u.k = a.k) y) AS x FROM t a

-- correlated scalar over a window
SELECT id, (SELECT max(r) FROM (SELECT x.k, row_number() OVER (PARTITION BY x.k ORDER BY x.id) AS r FROM shop.sales x) y WHERE y.k = a.k) AS x FROM t a

-- correlated scalar of groups
SELECT id, (SELECT count(*) FROM u WHERE u.k = a.k GROUP BY u.k) AS x FROM t a

-- correlated scalar of counts over nothing
SELECT id, (SELECT count(*) + count(u.n) FROM u WHERE u.k > a.k) AS x FROM t a

-- correlated list over nothing
SELECT id, (SELECT sort_array(collect_set(u.w)) FROM u WHERE u.k = a.k AND u.w > a.s) AS x FROM t a

-- correlated scalar with having
SELECT id, (SELECT count(*) FROM u WHERE u.k = a.k HAVING count(*) > 1) AS x FROM t a

-- correlated scalar of distinct values
SELECT id, (SELECT count(DISTINCT u.w) FROM u WHERE u.k < a.k) AS x FROM t a

-- correlated scalar over a join
SELECT id, (SELECT count(*) FROM u JOIN shop.sales x ON x.k = u.k AND x.id = a.id) AS x FROM t a

-- correlated scalar in a window
SELECT id, row_number() OVER (ORDER BY (SELECT max(x.amount) FROM shop.sales x WHERE x.k = a.k), id) AS r FROM t a

-- correlated scalar or
SELECT id FROM t a WHERE v > (SELECT count(*) FROM u WHERE u.k = a.k) OR k IS NULL

-- scalar and exists or
SELECT id FROM t a WHERE k = (SELECT min(k) FROM u) OR EXISTS (SELECT 1 FROM shop.sales x WHERE x.id = a.id AND x.amount > a.d)

-- scalar that is no aggregate
SELECT id, (SELECT amount FROM shop.sales WHERE id = 3) AS x, (SELECT k FROM e) AS y FROM t

-- in a case with an aggregate
SELECT sum(CASE WHEN k IN (SELECT k FROM u) THEN v END) AS x FROM t

-- nested in expressions
SELECT id, CASE WHEN EXISTS (SELECT 1 FROM u WHERE u.k = a.k AND (u.w = 'x' OR u.n IN (SELECT amount FROM shop.sales))) THEN 1 ELSE 0 END AS x FROM t a
