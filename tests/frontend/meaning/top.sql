-- order and limit
SELECT id, v FROM t ORDER BY v DESC, id LIMIT 5

-- order by an alias
SELECT id, -v AS w FROM t ORDER BY w, id LIMIT 5

-- an alias comes before an input column
SELECT id, -v AS v FROM t ORDER BY v, id LIMIT 5

-- an alias comes before an input column inside an expression
SELECT id, -v AS v FROM t ORDER BY v + 0, id LIMIT 5

-- a qualified name is the input column
SELECT id, -v AS v FROM t ORDER BY t.v, id LIMIT 5

-- order by an unselected column
SELECT s FROM t ORDER BY id LIMIT 4

-- order by an unselected expression
SELECT s FROM t ORDER BY id % 7, id LIMIT 4

-- order by ordinals
SELECT s, id FROM t ORDER BY 1 DESC, 2 LIMIT 5

-- order by all
SELECT s, id FROM t ORDER BY ALL LIMIT 5

-- order by all descending
SELECT s, id FROM t ORDER BY ALL DESC NULLS FIRST LIMIT 5

-- nulls
SELECT id, k FROM t ORDER BY k NULLS LAST, s DESC NULLS FIRST, id LIMIT 7

-- offset
SELECT id FROM t ORDER BY id LIMIT 3 OFFSET 2

-- offset alone
SELECT id FROM t ORDER BY id OFFSET 35

-- limit all
SELECT id FROM t ORDER BY id LIMIT ALL

-- limit of an expression
SELECT id FROM t ORDER BY id LIMIT 1 + 2

-- limit zero
SELECT id FROM t LIMIT 0

-- limit in a derived table
SELECT count(*) AS n, max(id) AS m FROM (SELECT id FROM t ORDER BY id LIMIT 4)

-- filter above a limit
SELECT id FROM (SELECT id, k FROM t ORDER BY id LIMIT 10) WHERE k = 1

-- limit over an aggregate
SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY n DESC, k LIMIT 2

-- order by an aggregate
SELECT k FROM t GROUP BY k ORDER BY count(*) DESC, k LIMIT 2

-- order by an aggregate that is selected
SELECT k, sum(v) AS sv FROM t GROUP BY k ORDER BY sum(v) DESC, k LIMIT 2

-- order by a group expression
SELECT k % 2 AS p, count(*) AS n FROM t GROUP BY k % 2 ORDER BY k % 2 DESC LIMIT 2

-- order by a group key that is not selected
SELECT count(*) AS n FROM t GROUP BY s ORDER BY s DESC LIMIT 2

-- an alias comes before a group key
SELECT -k AS k, count(*) AS n FROM t GROUP BY k ORDER BY k LIMIT 3

-- distinct and limit
SELECT DISTINCT k FROM t ORDER BY k DESC LIMIT 2

-- distinct and order by a qualified name
SELECT DISTINCT k, s FROM t ORDER BY t.k DESC, s LIMIT 2

-- distinct and order by an expression of the output
SELECT DISTINCT k AS x FROM t ORDER BY x % 3, x LIMIT 2

-- limit and having
SELECT k, count(*) AS n FROM t GROUP BY k HAVING n > 1 ORDER BY k LIMIT 2

-- limit of a star
SELECT * FROM t ORDER BY id DESC LIMIT 3

-- limit of a join
SELECT t.id, u.w FROM t JOIN u USING (k) ORDER BY t.id, u.w, u.n LIMIT 6

-- limit with explode
SELECT id, explode(arr) AS x FROM t ORDER BY id, x LIMIT 3

-- order by the exploded column
SELECT id, x FROM t LATERAL VIEW explode(arr) a AS x ORDER BY x DESC, id LIMIT 3
