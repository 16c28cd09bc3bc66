-- unaliased expressions of a derived table by position
SELECT * FROM (SELECT id + 1, upper(s) FROM t)

-- unaliased expressions of a derived table by Spark's name
SELECT `count(1)`, `sum(v)` FROM (SELECT k, count(1), sum(v) FROM t GROUP BY k)

-- a cast keeps its column's name
SELECT v, k, `CAST((k + 1) AS STRING)` FROM (SELECT CAST(v AS INT), CAST(k AS STRING), CAST(k + 1 AS STRING) FROM t)

-- a field's name
SELECT x, z FROM (SELECT st.x, st.deep.z FROM t)

-- a literal's name
SELECT `1`, lit FROM (SELECT 1, 'lit' FROM u)

-- names with dots
SELECT `a.b` FROM (SELECT k AS `a.b` FROM u)

-- names with backticks
SELECT x.`a``b` FROM (SELECT k AS `a``b` FROM u) x

-- struct star
SELECT st.* FROM t

-- struct star of a qualified column
SELECT t.st.*, id FROM t

-- struct of all columns
SELECT struct(*) AS whole FROM u

-- struct of a table's columns
SELECT struct(u.*) AS whole, id FROM t JOIN u ON t.k = u.k

-- arrays_zip takes names from columns | fallback: arrays_zip names its fields after its arguments
SELECT arrays_zip(arr, items) AS z FROM t

-- count of all columns
SELECT count(DISTINCT *) AS n, count(*) AS m FROM u

-- functions over all columns
SELECT hash(*) AS h, coalesce(x.*) AS c FROM (SELECT k, n FROM u) x

-- coalesce of a using column
SELECT coalesce(k, 0) AS k FROM t LEFT JOIN u USING (k)

-- alias of a table is hidden by nothing
SELECT k.k FROM u AS k

-- alias named as a column
SELECT s.id, s.s FROM t AS s WHERE s.s = 'x'

-- a column named as a function
SELECT count, sum FROM (SELECT k AS count, w AS sum FROM u)

-- reserved words
SELECT order.id AS `from` FROM t AS order

-- an alias in the WHERE of an outer query
SELECT big FROM (SELECT v > 2 AS big FROM t) WHERE big

-- a parquet path's columns by their own names
SELECT b.id FROM shop.sales AS b WHERE b.`a b` = 'x'
