-- union all
SELECT k, s FROM t UNION ALL SELECT k, w FROM u

-- union
SELECT k FROM t UNION SELECT k FROM u

-- union distinct
SELECT k FROM t UNION DISTINCT SELECT k FROM u

-- union of three
SELECT k FROM t UNION ALL SELECT k FROM u UNION ALL SELECT k FROM e

-- union and union all
SELECT k FROM t UNION SELECT k FROM u UNION ALL SELECT k FROM u

-- union widens types
SELECT k, d FROM t UNION ALL SELECT v, 1.23456BD FROM t

-- union of numbers and strings
SELECT k FROM t UNION ALL SELECT s FROM t

-- union with nulls
SELECT k, NULL AS x FROM t UNION ALL SELECT NULL, k FROM u

-- union takes names from the left
SELECT k AS a, s AS b FROM t UNION ALL SELECT k AS b, w AS a FROM u

-- intersect
SELECT k FROM t INTERSECT SELECT k FROM u

-- intersect all
SELECT k FROM t INTERSECT ALL SELECT k FROM u

-- except
SELECT k FROM t EXCEPT SELECT k FROM u

-- minus
SELECT k, s FROM t MINUS SELECT k, w FROM u

-- except all
SELECT k FROM t EXCEPT ALL SELECT k FROM u

-- except all, nothing left
SELECT k FROM u EXCEPT ALL SELECT k FROM t

-- except of different types
SELECT v FROM t EXCEPT SELECT k FROM u

-- intersect of different types
SELECT k FROM t INTERSECT SELECT v FROM t

-- except of longs and doubles
SELECT v + 9007199254740992 AS x FROM t EXCEPT SELECT f FROM t

-- intersect binds tighter
SELECT k FROM t UNION SELECT k FROM u INTERSECT SELECT 7

-- parentheses
(SELECT k FROM t UNION SELECT k FROM u) INTERSECT SELECT k FROM e

-- nested parentheses
(SELECT k FROM t) EXCEPT ((SELECT k FROM u) UNION ALL (SELECT 1))

-- set operation in from
SELECT k, count(*) AS n FROM (SELECT k FROM t UNION ALL SELECT k FROM u) x GROUP BY k

-- set operation over aggregates
SELECT k, count(*) AS n FROM t GROUP BY k UNION ALL SELECT -1, count(*) FROM u

-- filter above a union
SELECT a, src FROM (SELECT k AS a, 't' AS src FROM t UNION ALL SELECT k, 'u' FROM u) WHERE a > 1 AND src = 'u'

-- filter above an except
SELECT * FROM (SELECT k, s FROM t EXCEPT ALL SELECT k, w FROM u) WHERE k > 1

-- filter above a union of different types
SELECT * FROM (SELECT k AS a FROM t UNION ALL SELECT s FROM t) WHERE a > '1'

-- columns unused above a union
SELECT a FROM (SELECT k AS a, s FROM t UNION ALL SELECT k, w FROM u)

-- columns unused above a distinct union
SELECT a FROM (SELECT k AS a, s FROM t UNION SELECT k, w FROM u)

-- columns unused above an except
SELECT count(*) AS n FROM (SELECT k AS a, s FROM t EXCEPT SELECT k, w FROM u)

-- order and limit of a union
SELECT k, id FROM t UNION ALL SELECT k, 100 FROM e ORDER BY id DESC LIMIT 3

-- limits inside a union
(SELECT id FROM t ORDER BY id LIMIT 2) UNION ALL (SELECT id FROM t ORDER BY id DESC LIMIT 2)

-- values in a union
SELECT k FROM u UNION ALL VALUES (1), (2)

-- union of stars
SELECT * FROM u UNION ALL SELECT * FROM u

-- union of constants
SELECT 1 AS x UNION ALL SELECT 2 UNION SELECT 1

-- union of maps
SELECT m FROM t UNION ALL SELECT map('z', 1)
