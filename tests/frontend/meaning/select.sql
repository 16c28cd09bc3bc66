-- columns
SELECT id, s, v FROM t

-- star
SELECT * FROM t

-- qualified star
SELECT t.* FROM t

-- star of an alias
SELECT x.* FROM t AS x

-- star and more
SELECT *, v + 1 AS w FROM u JOIN (SELECT k AS kk, v FROM t) x ON x.kk = u.k

-- star except
SELECT * EXCEPT (m, arr, items) FROM t

-- qualified star except
SELECT x.* EXCEPT (m, st), x.id + 1 AS next FROM t x

-- expressions
SELECT id + 1 AS a, upper(s) AS b, v * 2 - id AS c, -v AS d, d / 3 AS e, f * 2 AS g FROM t

-- unaliased expressions keep Spark's names
SELECT id + 1, upper(s), st.x, arr[0], m['p'], CAST(v AS STRING), -v, 'text', 1, v IS NULL, d * 2 FROM t

-- case insensitive names
SELECT ID, T.S, st.DEEP.Z FROM T WHERE K > 1

-- where
SELECT id FROM t WHERE v > 1 AND s = 'x'

-- where or
SELECT id FROM t WHERE v > 1 OR s = 'x' AND k = 2

-- where not
SELECT id FROM t WHERE NOT (v > 1 AND s = 'x')

-- where null
SELECT id FROM t WHERE v IS NULL OR k IS NOT NULL AND NOT b

-- where boolean column
SELECT id FROM t WHERE b

-- where false
SELECT id FROM t WHERE false

-- in list
SELECT id FROM t WHERE k IN (1, 2, NULL) AND s NOT IN ('x')

-- between like
SELECT id FROM t WHERE v BETWEEN 1 AND 5 AND s LIKE '%a%' OR s LIKE 'a\%b' OR s LIKE 'a!%b' ESCAPE '!'

-- like any and all
SELECT id FROM t WHERE s LIKE ANY ('x%', 'Z%') OR s NOT LIKE ALL ('a%', 'y%')

-- rlike
SELECT id FROM t WHERE s RLIKE '^[a-z]$' OR s REGEXP r'\w%\w'

-- null safe equality
SELECT id, k <=> v AS same FROM t WHERE NOT k <=> v

-- struct fields
SELECT st.x, t.st.y, st.deep.z, (st).x + 1 AS n FROM t

-- struct of fields
SELECT struct(id, st.x, v AS w, k + 1, upper(s)) AS packed FROM t

-- nested struct
SELECT named_struct('a', id, 'b', struct(s, struct(v))) AS packed FROM t

-- struct with the names as written
SELECT struct(ID, S) AS packed FROM t

-- array of structs
SELECT items.x, items[0].y, transform(items, i -> i.x + id) AS moved FROM t

-- arrays and maps
SELECT arr[0], element_at(m, 'p'), size(arr), array(k, v)[1], map('a', v)['a'], m.p FROM t

-- lambdas
SELECT transform(arr, x -> x + id) AS a, filter(arr, (x, i) -> i < k) AS b, aggregate(arr, 0, (s, x) -> s + x) AS c FROM t

-- lambda variables hide columns
SELECT transform(arr, id -> id + 1) AS a, transform(arr, c1 -> c1 + id) AS b, transform(arr, C2 -> c2 + k + v) AS c FROM t

-- nested lambdas
SELECT transform(arr, x -> exists(arr, y -> y > x + k)) AS a, map_filter(m, (k, v) -> v > 1) AS b FROM t

-- lambda over struct elements
SELECT filter(items, i -> i.x > st.x) AS a, transform(items, st -> st.y) AS b FROM t

-- case
SELECT CASE WHEN v > 2 THEN 'big' WHEN v IS NULL THEN s ELSE 'small' END AS size, CASE k WHEN 1 THEN 'one' END AS one FROM t

-- casts
SELECT v::STRING AS a, CAST(s AS INT) AS b, (id + 1)::DECIMAL(5,1) AS c, TRY_CAST(s AS DOUBLE) AS e, int(f) AS g FROM t

-- literals
SELECT 1L AS a, 1.5BD AS b, 1e3 AS c, 2S AS d, X'1F' AS e, DATE'2020-01-01' AS f, TIMESTAMP'2020-01-01 00:00:00' AS g, INTERVAL 1 DAY AS h, r'a\b' AS i, "double" AS j, 'it''s' AS k, 'a\'b' AS l, NULL AS n FROM u

-- strings with odd characters
SELECT '{x} {{y}} ${z} %s -- no /* no */' AS a, 'a\nb' AS b, '\\d+' AS c, '"' AS d, "'" AS e FROM u WHERE w <> '{0}'

-- dates
SELECT ts + INTERVAL 1 DAY 2 HOURS AS a, day + 1 AS b, extract(YEAR FROM ts) AS c, date_trunc('day', ts) AS d, datediff(day, DATE'2020-01-01') AS e, dateadd(DAY, 1, ts) AS f FROM t

-- trim and friends
SELECT trim(BOTH 'a' FROM s) AS a, substring(s FROM 1 FOR 2) AS b, position('a' IN s) AS c, overlay(s PLACING 'Z' FROM 1) AS d FROM t

-- operators
SELECT k DIV 2 AS a, v % 3 AS b, s || k AS c, k & 1 AS d, k | 4 AS e, k ^ 1 AS f, ~k AS g, k << 1 AS h, NOT b AS i, !b AS j FROM t

-- conditions as values
SELECT v > 1 AS a, v = k AND b AS b, s IS NULL AS c, b IS TRUE AS d, b IS NOT FALSE AS e, k IS DISTINCT FROM v AS f FROM t

-- lateral column alias
SELECT k + 1 AS x, x * 2 AS y, y + x AS z FROM t

-- an input column comes before a lateral alias
SELECT v + 100 AS k, k + 1 AS next FROM t

-- lateral alias of a struct
SELECT struct(k AS p, v AS q) AS pair, pair.p + 1 AS p1 FROM t

-- lateral alias used by a qualified name
SELECT k AS x, t.k AS y, x + 1 AS z FROM t

-- distinct
SELECT DISTINCT k, s FROM t

-- distinct of an expression
SELECT DISTINCT v > 2 AS big FROM t

-- distinct star
SELECT DISTINCT * FROM u

-- all
SELECT ALL k FROM u

-- order without limit means nothing
SELECT k, v FROM t ORDER BY v DESC, k

-- sort, distribute and cluster mean nothing
SELECT k FROM t DISTRIBUTE BY k SORT BY v

-- hints mean nothing
SELECT /*+ BROADCAST(u) REPARTITION(3) */ t.id, u.w FROM t JOIN u ON t.k = u.k

-- comments
SELECT id -- the id
  , /* value */ v FROM t -- all
WHERE id > 3 /* some */

-- without from
SELECT 1 AS one, 'x' AS x, array(1, 2) AS a

-- without from, with a condition
SELECT 1 AS one WHERE 1 = 2

-- from first
FROM t SELECT id, k WHERE k = 1

-- trailing semicolon
SELECT id FROM t;

-- quoted names
SELECT id AS `a b`, k AS `select`, s AS `x.y`, v AS `tick``s` FROM t

-- quoted column of a table in a schema
SELECT `a b`, sales.`a b` AS other, shop.sales.id FROM shop.sales WHERE shop.sales.k = 1

-- full name with the catalog
SELECT spark_catalog.shop.sales.id, s.amount FROM shop.sales JOIN shop.sales s ON s.id = sales.id

-- empty table
SELECT k, v + 1 AS w FROM e

-- same column twice under two names
SELECT k AS a, k AS b, k + 0 AS c FROM t

-- values
SELECT * FROM VALUES (1, 'a'), (2, NULL) AS x(n, s)

-- values alone
VALUES (1, 'a'), (1, 'a')

-- values without names
SELECT col1, col2 FROM VALUES (1, 'a'), (2, 'b')

-- range
SELECT id * 2 AS twice FROM range(5) WHERE id > 1

-- range of an alias
SELECT r.id FROM range(2, 6) AS r

-- json and variants
SELECT get_json_object('{"a":1}', '$.a') AS a, from_json('{"a":1}', 'a INT').a AS b, parse_json('{"a":[1]}'):a[0]::INT AS c FROM u

-- struct of lambda variables
SELECT transform(arr, c1 -> struct(c1, id)) AS a, transform(arr, x -> struct(x, x + 1 AS y)) AS b FROM t
