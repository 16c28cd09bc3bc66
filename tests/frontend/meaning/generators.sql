-- lateral view
SELECT id, x FROM t LATERAL VIEW explode(arr) a AS x

-- lateral view outer
SELECT id, x + 1 AS y FROM t LATERAL VIEW OUTER explode(arr) a AS x

-- lateral view without a table alias
SELECT id, x FROM t LATERAL VIEW explode(arr) AS x

-- lateral view of a map
SELECT id, key, n FROM t LATERAL VIEW explode(m) a AS key, n

-- posexplode
SELECT id, p, x FROM t LATERAL VIEW posexplode(arr) a AS p, x WHERE p > 0

-- outer posexplode
SELECT id, a.p, a.x FROM t LATERAL VIEW OUTER posexplode(arr) a AS p, x

-- inline
SELECT id, i.x, i.y FROM t LATERAL VIEW inline(items) i AS x, y

-- outer inline
SELECT id, i.* FROM t LATERAL VIEW OUTER inline(items) i AS x, y

-- stack
SELECT id, n, what FROM t LATERAL VIEW stack(2, k, 'k', id, 'id') z AS n, what

-- outer stack
SELECT id, n FROM t LATERAL VIEW OUTER stack(1, k) z AS n

-- json_tuple
SELECT a, b FROM u LATERAL VIEW json_tuple('{"a":1,"b":2}', 'a', 'b') j AS a, b

-- two lateral views
SELECT id, x, y FROM t LATERAL VIEW explode(arr) a AS x LATERAL VIEW explode(items) b AS y WHERE x = y.x

-- lateral view over a join
SELECT t.id, u.w, x FROM t JOIN u ON t.k = u.k LATERAL VIEW explode(arr) a AS x

-- lateral view and group
SELECT x, count(*) AS n FROM t LATERAL VIEW explode(arr) a AS x GROUP BY x

-- lateral view with Spark's names
SELECT id, col FROM t LATERAL VIEW explode(arr) a

-- lateral view of a map with Spark's names
SELECT id, a.* FROM t LATERAL VIEW explode(m) a

-- lateral view star
SELECT * FROM (SELECT id, arr FROM t) LATERAL VIEW posexplode(arr) a

-- explode in select
SELECT id, explode(arr) AS x FROM t

-- explode in select without alias
SELECT explode(arr), id FROM t

-- explode_outer in select
SELECT id, explode_outer(arr) AS x FROM t

-- posexplode in select
SELECT id, posexplode(arr) FROM t

-- posexplode in select with names
SELECT posexplode(arr) AS (p, x), id FROM t

-- inline in select
SELECT id, inline(items) FROM t

-- map in select
SELECT explode(m), id FROM t

-- map in select with names
SELECT id, explode(m) AS (what, n) FROM t

-- stack in select
SELECT s, stack(2, k, id) FROM t

-- explode of an expression
SELECT id, explode(split('a,b', ',')) AS x FROM t WHERE id < 3

-- explode and distinct
SELECT DISTINCT explode(arr) AS x FROM t

-- explode over an aggregate
SELECT k, explode(sort_array(collect_set(v))) AS x FROM t GROUP BY k

-- explode in a derived table
SELECT x, count(*) AS n FROM (SELECT id, explode(arr) AS x FROM t) GROUP BY x

-- filter above an explode
SELECT * FROM (SELECT id, explode(arr) AS x FROM t) WHERE id > 3 AND x > 1

-- explode from
SELECT * FROM explode(array(1, 2)) AS e(x)

-- lateral table function
SELECT t.id, l.x FROM t, LATERAL explode(t.arr) AS l(x)

-- left join of a lateral table function
SELECT t.id, l.x FROM t LEFT JOIN LATERAL explode(t.arr) AS l(x) ON true

-- left join of a lateral table function with a condition
SELECT t.id, l.x FROM t LEFT JOIN LATERAL explode(t.arr) AS l(x) ON l.x > 1
