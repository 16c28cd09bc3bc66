-- inner
SELECT t.id, u.w FROM t JOIN u ON t.k = u.k

-- inner with more conditions
SELECT t.id, u.w FROM t INNER JOIN u ON t.k = u.k AND t.s < u.w WHERE t.v > 1

-- comma
SELECT a.id, b.id AS other FROM t a, t b WHERE a.k = b.k AND a.id < b.id

-- comma and join
SELECT a.id, b.w, c.v FROM t a, u b JOIN e c ON b.k = c.k WHERE a.k = b.k

-- three ways
SELECT a.id, b.w, c.id AS cid FROM t a JOIN u b ON a.k = b.k JOIN t c ON c.v = a.v AND c.k = b.k WHERE a.id <> c.id

-- cross
SELECT t.id, u.w FROM t CROSS JOIN u WHERE t.id < 3

-- join without condition
SELECT t.id, u.w FROM t JOIN u WHERE t.id < 2

-- theta
SELECT a.id, b.id AS other FROM t a JOIN t b ON a.v < b.v AND a.id < 4

-- expression condition
SELECT a.id, u.w FROM t a JOIN u ON a.k + 1 = u.k OR a.s = u.w

-- null safe
SELECT t.id, u.w FROM t JOIN u ON t.k <=> u.k

-- left
SELECT t.id, u.k, u.w FROM t LEFT JOIN u ON t.k = u.k

-- left with a condition on the left
SELECT t.id, u.w FROM t LEFT OUTER JOIN u ON t.k = u.k AND t.v > 1

-- left with a condition on the right
SELECT t.id, u.w FROM t LEFT JOIN u ON t.k = u.k AND u.w = 'x'

-- left and where
SELECT t.id, u.w FROM t LEFT JOIN u ON t.k = u.k WHERE u.w IS NULL AND t.v > 1

-- left where that makes it inner
SELECT t.id, u.w FROM t LEFT JOIN u ON t.k = u.k WHERE u.w = 'x'

-- left chain
SELECT a.id, b.w, c.v FROM t a LEFT JOIN u b ON a.k = b.k LEFT JOIN e c ON c.k = b.k

-- left then inner
SELECT a.id, b.w, c.id AS cid FROM t a LEFT JOIN u b ON a.k = b.k JOIN shop.sales c ON c.k = b.k

-- inner then left
SELECT a.id, b.w, c.amount FROM t a JOIN u b ON a.k = b.k LEFT JOIN shop.sales c ON c.k = b.k AND c.amount > a.v

-- left of a constant
SELECT t.id, x.n FROM t LEFT JOIN (SELECT 1 AS k, 'one' AS n) x ON x.k = t.k

-- left without a condition that holds
SELECT t.id, u.w FROM t LEFT JOIN u ON false

-- right
SELECT t.id, t.v, u.w FROM t RIGHT JOIN u ON t.k = u.k

-- right star
SELECT * FROM (SELECT id, k FROM t) a RIGHT JOIN u ON a.k = u.k

-- right and where
SELECT t.id, u.w FROM t RIGHT JOIN u ON t.k = u.k WHERE t.id IS NULL OR u.w = 'x'

-- full
SELECT t.id, u.w, u.k FROM t FULL JOIN u ON t.k = u.k

-- full and where
SELECT t.id, u.w FROM t FULL OUTER JOIN u ON t.k = u.k WHERE t.v > 1 OR u.w = 'x'

-- full with residual
SELECT t.id, u.w FROM t FULL JOIN u ON t.k = u.k AND t.v > 2

-- semi
SELECT * FROM t LEFT SEMI JOIN u ON t.k = u.k

-- semi with residual
SELECT id FROM t SEMI JOIN u ON t.k = u.k AND t.s > u.w

-- anti
SELECT id, k FROM t LEFT ANTI JOIN u ON t.k = u.k

-- anti with residual and where
SELECT id FROM t ANTI JOIN u ON t.k = u.k AND u.w = 'x' WHERE t.v > 1

-- semi using
SELECT * FROM t LEFT SEMI JOIN u USING (k)

-- using
SELECT * FROM t JOIN u USING (k)

-- using with qualified columns
SELECT k, t.k AS tk, u.k AS uk, w FROM t JOIN u USING (k)

-- left using
SELECT k, u.k AS uk, id, w FROM t LEFT JOIN u USING (k)

-- right using
SELECT *, a.k AS ak FROM (SELECT id, k FROM t) a RIGHT JOIN u USING (k)

-- full using
SELECT *, a.k AS ak, u.k AS uk FROM (SELECT id, k FROM t) a FULL JOIN u USING (k)

-- full using of different types
SELECT * FROM (SELECT v AS k, id FROM t) a FULL JOIN u USING (k)

-- stars of both sides of using
SELECT a.*, u.* FROM (SELECT id, k FROM t) a LEFT JOIN u USING (k)

-- using twice
SELECT * FROM (SELECT id, k FROM t) a JOIN u USING (k) LEFT JOIN e USING (k)

-- using two columns
SELECT * FROM (SELECT id, k, s AS w FROM t) a JOIN u USING (k, w)

-- natural
SELECT * FROM (SELECT id, k FROM t) a NATURAL JOIN u

-- natural left
SELECT * FROM (SELECT id, k, s AS w FROM t) a NATURAL LEFT JOIN u

-- natural without common columns
SELECT * FROM (SELECT id FROM t WHERE id < 3) a NATURAL JOIN (SELECT w FROM u) b

-- parenthesized join
SELECT a.id, b.w, c.v FROM t a LEFT JOIN (u b JOIN e c ON b.k = c.k) ON a.k = b.k

-- parenthesized inner join
SELECT a.id, b.w FROM (t a JOIN u b ON a.k = b.k) WHERE a.v > 1

-- alias hides the table's name
SELECT u.id, t.w FROM t u JOIN u t ON t.k = u.k

-- a table's alias comes before a column
SELECT t.k, u.t.k AS inner_k FROM t JOIN u ON t.k = u.k

-- a column's field where there is no such table
SELECT t.k, t.q FROM u

-- derived tables
SELECT x.n, y.w FROM (SELECT k, count(*) AS n FROM t GROUP BY k) x JOIN (SELECT DISTINCT k, w FROM u) y ON x.k = y.k

-- derived table with column names
SELECT x.a, x.b FROM (SELECT id, v FROM t) AS x(a, b) WHERE x.a > 3

-- table with column names
SELECT x.a, x.d FROM u AS x(a, b, c, d)

-- derived table without alias
SELECT n FROM (SELECT k, count(*) AS n FROM t GROUP BY k) WHERE n > 2

-- join with values
SELECT t.id, x.name FROM t JOIN (VALUES (1, 'one'), (2, 'two')) AS x(k, name) ON x.k = t.k

-- join with range
SELECT t.id, r.id AS n FROM t JOIN range(1, 3) r ON r.id = t.k

-- self join of a derived table
SELECT a.n, b.n AS m FROM (SELECT k, count(*) AS n FROM t GROUP BY k) a JOIN (SELECT k, count(*) AS n FROM t GROUP BY k) b ON a.n < b.n

-- join over unions
SELECT x.k, u.w FROM (SELECT k FROM t UNION ALL SELECT k FROM e) x JOIN u ON u.k = x.k WHERE x.k > 1

-- on with functions of both sides
SELECT t.id, u.w FROM t JOIN u ON coalesce(t.k, 0) = coalesce(u.k, 0) AND length(concat(t.s, u.w)) > 1

-- join on a struct's field
SELECT t.id, u.w FROM t JOIN u ON t.st.x = u.t.k

-- join in a schema
SELECT t.id, sales.amount, shop.sales.k FROM t JOIN shop.sales ON t.id = sales.id

-- lateral subquery
SELECT t.id, x.n FROM t, LATERAL (SELECT count(*) AS n FROM u WHERE u.k = t.k) x

-- lateral aggregate
SELECT a.id, x.m, x.n FROM t a, LATERAL (SELECT max(u.n) AS m, count(*) AS n FROM u WHERE u.k = a.k) x

-- lateral first rows
SELECT a.id, x.w FROM t a LEFT JOIN LATERAL (SELECT u.w, u.n FROM u WHERE u.k = a.k ORDER BY u.n, u.w LIMIT 2) x

-- lateral with a condition
SELECT a.id, x.w FROM t a JOIN LATERAL (SELECT u.w, u.n FROM u WHERE u.k < a.k) x ON x.n > a.d

-- lateral left with a condition
SELECT a.id, x.w FROM t a LEFT JOIN LATERAL (SELECT u.w, u.n FROM u WHERE u.k = a.k) x ON x.n > 1

-- lateral without a relation
SELECT a.id, x.y, z.w FROM t a, LATERAL (SELECT a.v + 1 AS y) x, LATERAL (SELECT x.y * 2 AS w) z

-- lateral union
SELECT a.id, x.y FROM t a, LATERAL (SELECT u.k AS y FROM u WHERE u.k = a.k UNION ALL SELECT a.id) x

-- lateral distinct
SELECT a.id, x.w FROM t a, LATERAL (SELECT DISTINCT u.w FROM u WHERE u.k = a.k) x

-- lateral window
SELECT a.id, x.r FROM t a, LATERAL (SELECT row_number() OVER (ORDER BY u.n, u.w) AS r FROM u WHERE u.k = a.k) x

-- lateral with names
SELECT a.id, x.p FROM t a, LATERAL (SELECT u.w, u.n FROM u WHERE u.k = a.k) AS x(p, q)

-- lateral star
SELECT a.id, x.* FROM t a, LATERAL (SELECT u.w, u.n AS m FROM u WHERE u.k = a.k) x

-- lateral values of both
SELECT a.s, x.z FROM t a, LATERAL (SELECT a.k + u.n AS z FROM u WHERE u.k = a.k) x

-- lateral without correlation
SELECT a.id, x.n FROM t a, LATERAL (SELECT count(*) AS n FROM u) x

-- lateral grouped
SELECT a.id, x.w, x.n FROM t a, LATERAL (SELECT u.w, count(*) AS n FROM u WHERE u.k = a.k GROUP BY u.w HAVING count(*) > 0) x

-- lateral of a join
SELECT a.id, x.z FROM t a, LATERAL (SELECT b.id AS z FROM u JOIN t b ON b.k = u.k WHERE u.k = a.k AND b.id < a.id) x

-- exists in the condition of an inner join
SELECT a.id, u.w FROM t a JOIN u ON a.k = u.k AND (EXISTS (SELECT 1 FROM shop.sales x WHERE x.k = u.k) OR u.w = 'x')

-- a scalar in the condition of a join
SELECT a.id, u.w FROM t a JOIN u ON a.k = u.k AND u.n > (SELECT min(amount) FROM shop.sales)
