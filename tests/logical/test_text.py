"""The text that is made of an expression means to Spark what the expression means: the same value, and the same type.

Each expression is compared with what is printed of its tree, and with the same with every part in parentheses: the first
shows that the text is kept, the second that the tree is bound as Spark binds it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import TYPE_CHECKING

import pytest
import sqlglot
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.frontend.template import block_template
from dbt_incremental_dd.logical.dialect import VerbatimSpark
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.literals import OPAQUE
from tests.engine.examples import examples, expression, has_one_answer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BATCH = 150
INTERVALS = [
    *(
        f"interval {n} {unit}"
        for n in (1, 3)
        for unit in ("year", "months", "week", "day", "hours", "minute", "seconds")
    ),
    *("interval 4 milliseconds", "interval 5 microsecond", "interval 1.5 seconds", "interval -1.5 seconds"),
    *("interval 1 day 2 hours", "interval 1 year 2 months", "interval '1' day '2' hours", "interval 1 day -2 hours"),
    *("interval 1 day - 2 hours", "interval -1 day 2 hours", "interval + 1 day", "interval - '1' day"),
    *("interval 1 week 2 days 3 hours 4 minutes 5 seconds 6 milliseconds 7 microseconds",),
    *("interval '1 day 2 hours'", "INTERVAL '1 year 2 months'", "interval '-1 day'", "interval '1 day' /* x */"),
    *("interval '1-2' year to month", "interval -'1-2' year to month", "interval '-1-2' year to month"),
    *("interval '1 2' day to hour", "interval '1 2:03' day to minute", "interval '1 2:03:04.5' day to second"),
    *("interval '2:03' hour to minute", "interval '2:03:04' hour to second", "interval '3:04.001' minute to second"),
    *("interval '1' '0' day", r'interval "1" day', "interval r'1' day"),
]
TIMES = [
    *("date '2024-02-29'", 'DATE"2024-02-29"', "date'2024'", "timestamp '2024-02-29 12:34:56.789'"),
    *("timestamp '2024-02-29 12:00:00+03:00'", "timestamp'2024-02-29T12:00:00 Europe/Berlin'"),
    *("timestamp_ntz '2024-02-29 12:34:56'", "timestamp_ltz'2024-02-29 12:34:56Z'", "date r'2024-01-01'"),
]
OF_TIME = ["time '00:01:52'", "TIME'12:34:56.123456'", 'time "23:59"', "cast(time '00:01:52' as int)"]
NUMBERS = [
    *("0", "007", "2147483648", "9223372036854775807", "9223372036854775808", "1L", "-5l", "1S", "2Y", "-128Y"),
    *("1.", ".5", "0.50", "1.e3", "1e3", "1E-3", "1e3D", "1d", "1.5F", "2f", "2.5BD", "1e3BD", "1E-3bd", "0.0010BD"),
    *("12345678901234567890123456789012345678", "- 9223372036854775808L", "1.5::int", "-2::string", "-2.5BD::int"),
]
STRINGS = [
    *(
        "'a'",
        '"a"',
        "''",
        "'it''s'",
        r"'it\'s'",
        '"it\'s"',
        r'"say \"x\""',
        "'say \"x\"'",
        "'a' 'b'",
        "'a'\"b\" r'\\c'",
    ),
    *(r"'\n\t\r\b\0\Z\d\\'", r"'\%\_'", r"r'\d\'", r'R"\w\"', r"'\u0041\U0001F600\101'", "'ü😀'", "'a\nb'", "'{0}'"),
    *("'--x'", "'/*x*/'", r"'a\'' 'b'", "'dd_now()'", "'a' -- x\n 'b'", "''''", "'\\\\'"),
]
BINARY = ["X'1F'", "x''", "X'abc'", 'X"00ff"', "X'1F' is null"]
OTHERS = [
    *("null", "TRUE", "false", "array(1)[0]", "map('a', 1)['a']", "named_struct('a', 1).a", "struct(1, 'x').col2"),
    *("cast(null as void)", "cast(1 as decimal(10, 2))", "cast('1' as interval day)", "cast(1 as string)"),
    *("null::void", "null::void is null", "'a'::string collate utf8_lcase = 'A'"),
    *("cast('1-2' as interval year to month)", "cast('1 02:03:04' as interval day to second)", "'1'::smallint"),
    *("cast('2024-01-01' as timestamp_ntz)", "cast('2024-01-01' as timestamp_ltz)", "cast(array(1) as array<bigint>)"),
    *("cast(null as struct<`a b`: array<map<string, decimal(5,1)>>>)", "cast('x' as char(3))"),
    *(
        "cast(1 as byte)",
        "cast(1 as short)",
        "cast(1 as long)",
        "cast(1 as real)",
        "cast(1 as dec(3))",
        "try_cast('x' as int)",
    ),
    *(
        "extract(day from date'2024-02-29')",
        "trim(both 'x' from 'xax')",
        "trim(leading from ' a')",
        "substring('abc' from 2)",
    ),
    *("substring('abc' from 2 for 1)", "position('b' in 'abc')", "overlay('abc' placing 'x' from 2 for 1)"),
    *("dateadd(day, 1, date'2024-01-01')", "timestampdiff(hour, date'2024-01-01', date'2024-01-02')", "div(7, 2)"),
    *("case 1 when 1 then 'a' else 'b' end", "case when true then 1 end", "if(true, 1, 2.5)", "any_value(1) over ()"),
    *(
        "transform(array(1, 2), x -> x + 1)",
        "aggregate(array(1, 2), 0, (a, x) -> a + x, a -> -a)",
        "int('1')",
        "date('2024')",
    ),
    *("'a' like any ('a', 'b')", "'a' not like all ('a', 'b')", "'a%' like 'a/%' escape '/'", r"'a\\' like '%\\\\'"),
    *("1 !< 2", "1 !> 2", "1 == 1", "1 != 1", "!true", "! false and false", "true is not true", "null is not unknown"),
]
COMPARED = ("=", "<=>", "<>", "<", ">=")
BINARIES = ("+", "-", "*", "/", "%", "div", "||", "&", "|", "^", "<<", ">>", ">>>", *COMPARED, "and", "or")
UNARIES = ("-", "+", "~", "not", "!")
PREDICATES = (
    *("is null", "is not null", "is true", "is not distinct from 1", "is distinct from null", "between 1 and 2"),
    *("not between 0 and 2", "in (1, 2)", "not in (3)", "like '1%'", "not like '1%'", "rlike '1'", "not ilike '2'"),
)
OPERANDS = ("6", "3", "2")


def pairs() -> list[str]:
    """Every two operators beside each other, and with parentheses around either."""
    a, b, c = OPERANDS
    found: list[str] = []
    for one, other in product(BINARIES, BINARIES):
        texts = (f"{a} {one} {b} {other} {c}", f"({a} {one} {b}) {other} {c}", f"{a} {one} ({b} {other} {c})")
        found += [_with_booleans(text, {one, other}) for text in texts]
        if {one, other} <= {*COMPARED, "and", "or"}:
            found += [_all_boolean(text) for text in texts]
    for sign, binary in product(UNARIES, BINARIES):
        found += [f"{sign} {a} {binary} {b}", f"{a} {binary} {sign} {b}", f"{sign} ({a} {binary} {b})"]
        found += [_all_boolean(text) for text in found[-3:] if sign in ("not", "!")]
    for binary, predicate in product(BINARIES, PREDICATES):
        left, right = f"{a} {binary} {b}", f"{c} {binary} 1"
        found += [
            f"{left} {predicate}",
            f"({left}) {predicate}",
            f"{a} {binary} ({b} {predicate})",
            f"not {left} {predicate}",
        ]
        found += [f"{left} between {right} and {left}", f"{left} not like {right}", f"{left} in ({right}, {left})"]
        found += [f"{left} is distinct from {right} or {left} {predicate}"] if binary not in ("and", "or") else []
    for sign, predicate in product(UNARIES, PREDICATES):
        found += [f"{sign} {a} {predicate}", f"{sign} true {predicate}", f"false or {sign} {a} {predicate}"]
    return [*dict.fromkeys(found), *(f"{one} {other} {a}" for one, other in product(UNARIES, UNARIES))]


def _with_booleans(text: str, operators: set[str]) -> str:
    """Numbers, but beside AND and OR."""
    if not operators & {"and", "or"}:
        return text
    text = re.sub(r"\d(?= (?:and|or))", "true", text)
    return re.sub(r"(?<=and )\d|(?<=or )\d", "false", text)


def _all_boolean(text: str) -> str:
    return re.sub(r"\b[236]\b", lambda found: {"6": "true", "3": "false", "2": "true"}[found[0]], text)


@pytest.mark.parametrize("texts", [INTERVALS, TIMES, OF_TIME, NUMBERS, STRINGS, BINARY, OTHERS], ids=lambda t: t[0])
def test_literals_and_forms(spark: SparkSession, texts: list[str]) -> None:
    """Also below an operator, after a minus, and as a function's argument."""
    known = accepted(spark, [*texts, *(f"1 = 1 and ({text}) is null" for text in texts)])
    of_times = [f"{t} {sign} {text}" for t in TIMES[:3] for sign in "+-" for text in texts if texts is INTERVALS]
    scaled = [f"{factor}{text}" for factor in ("2 * ", "- ", "-(-", "concat('', ") for text in texts]
    scaled = [text + ")" * (text.count("(") - text.count(")")) for text in scaled if not text.startswith("- -")]
    known |= accepted(spark, of_times + scaled)
    if texts is not OF_TIME:  # which Spark 4.0 does not have
        assert not [text for text in texts if text not in known]
    assert not differences(spark, known)


def test_operators_bind_as_in_spark(spark: SparkSession) -> None:
    known = accepted(spark, random.Random(5).sample(pairs(), 400), together=1)
    assert len(known) > 200
    assert not differences(spark, known)


@pytest.mark.slow
def test_all_pairs_of_operators_bind_as_in_spark(spark: SparkSession) -> None:
    known = accepted(spark, pairs(), together=1)
    assert len(known) > 2_000
    assert not differences(spark, known)


def accepted(spark: SparkSession, texts: Iterable[str], together: int = 20) -> dict[str, str]:
    """The texts that are expressions to Spark, and their types: by one query where all are, else by halves."""

    def types_of(some: list[str]) -> dict[str, str]:
        try:
            frame = spark.sql("SELECT " + ", ".join(f"{text}\n AS c{i}" for i, text in enumerate(some)))
            return {text: field.dataType.simpleString() for text, field in zip(some, frame.schema, strict=True)}
        except (PySparkException, Py4JJavaError):
            half = len(some) // 2
            return types_of(some[:half]) | types_of(some[half:]) if half else {}

    texts = list(dict.fromkeys(texts))
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(types_of, (texts[i : i + together] for i in range(0, len(texts), together)))
    return {text: type for types in found for text, type in types.items()}


def differences(spark: SparkSession, known: dict[str, str]) -> list[str]:
    """What of the texts is printed with another meaning, or bound otherwise."""
    made: list[tuple[str, str]] = []
    failures = []
    for text in known:
        try:
            tree = sqlglot.parse_one(text, dialect=VerbatimSpark)
        except SqlglotError as error:
            failures.append(f"{text}: cannot be parsed: {error}")
            continue
        printed = dict.fromkeys((Expr.of(tree).sql, Expr.of(bound(tree)).sql))
        made += [(text, other) for other in printed if _words(other) != _words(text)]
    for start in range(0, len(made), _BATCH):
        failures += _differing(spark, made[start : start + _BATCH], known)
    return failures


def _words(text: str) -> list[str]:
    """Equal for texts that differ in spaces, comments, and the case of names only."""
    tokens = VerbatimSpark().tokenize(text)
    return [t.text if t.token_type in _LITERALS else t.text.lower() for t in tokens]


def bound(tree: exp.Expression) -> exp.Expression:
    """A copy with every operation in parentheses."""
    holder = exp.Tuple(expressions=[tree.copy()])
    for node in reversed(list(holder.find_all(exp.Binary, exp.Unary, exp.Between, exp.In))):
        if not isinstance(node, _NO_OPERATIONS) and not isinstance(node.parent, exp.Paren | exp.Escape | exp.Dot):
            paren = exp.Paren()
            node.replace(paren)
            paren.set("this", node)
    result: exp.Expression = holder.expressions[0]
    return result


def _differing(spark: SparkSession, made: list[tuple[str, str]], known: dict[str, str]) -> list[str]:
    """By one query where Spark takes all of the printed texts, else by halves."""
    try:
        columns = [f"({text}\n)" for pair in made for text in pair]
        frame = spark.sql("SELECT " + ", ".join(f"{text} AS c{i}" for i, text in enumerate(columns)))
        types = [field.dataType.simpleString() for field in frame.schema]
        values = [repr(value) for value in frame.selectExpr(*(_shown(i, type) for i, type in enumerate(types))).first()]
    except (PySparkException, Py4JJavaError) as error:
        if len(made) == 1:
            return [f"{made[0][0]} as {made[0][1]}: {str(error)[:200]}"] if _has_value(spark, made[0][0]) else []
        half = len(made) // 2
        return _differing(spark, made[:half], known) + _differing(spark, made[half:], known)
    return [
        f"{text} is {known[text]} {values[2 * i]}, but {printed} is {types[2 * i + 1]} {values[2 * i + 1]}"
        for i, (text, printed) in enumerate(made)
        if (types[2 * i], values[2 * i]) != (types[2 * i + 1], values[2 * i + 1])
    ]


def _shown(i: int, type: str) -> str:
    return f"hex(c{i}) AS c{i}" if type == "binary" else f"CAST(c{i} AS STRING) AS c{i}"


def _has_value(spark: SparkSession, text: str) -> bool:
    try:
        return spark.sql(f"SELECT ({text}\n) AS x").selectExpr("CAST(x AS STRING)").first() is not None
    except (PySparkException, Py4JJavaError):
        return False


_LITERALS = (OPAQUE, TokenType.STRING, TokenType.NUMBER)
_NO_OPERATIONS = (exp.Dot, exp.Paren, exp.Bracket, exp.Kwarg, exp.PropertyEQ, exp.JSONExtract, exp.Collate)


def test_sparks_own_examples(spark: SparkSession) -> None:
    """Expressions by value and type; what is another each time by type; whole queries by their rows."""
    found = examples(spark)
    texts = list(dict.fromkeys(text for queries in found.values() for text in queries))
    assert len(found) > 400
    assert len(texts) > 500
    alone = {text: expression(text) for text in texts}
    known = accepted(spark, [e for e in alone.values() if e])
    steady = {e: known[e] for text, e in alone.items() if e in known and has_one_answer(text)}
    failures = differences(spark, steady)
    printed = {e: Expr.of(sqlglot.parse_one(e, dialect=VerbatimSpark)).sql for e in known if e not in steady}
    types = accepted(spark, printed.values())
    failures += [
        f"{e} is {known[e]}, but {p} is {types.get(p)}" for e, p in printed.items() if known[e] != types.get(p)
    ]
    rest = [text for text, e in alone.items() if e not in known and has_one_answer(text)]
    with ThreadPoolExecutor(4) as pool:
        failures += [failure for failure in pool.map(lambda text: _query_differs(spark, text), rest) if failure]
    assert not failures, "\n".join(failures)


def _query_differs(spark: SparkSession, text: str) -> str:
    """Why the query that is printed is another one; empty where it is the same, or none to Spark."""
    made, keys = block_template(parsed(text).tree)
    printed = made.format(*keys)
    answer = "" if _words(printed) == _words(text) else _answer(spark, text)
    if not answer:
        return ""
    other = _answer(spark, printed)
    return "" if other == answer else f"{text} is {answer}, but {printed} is {other}"


def _answer(spark: SparkSession, text: str) -> str:
    try:
        frame = spark.sql(text)
        types = [field.dataType.simpleString() for field in frame.schema]
        rows = frame.toDF(*(f"c{i}" for i in range(len(types)))).selectExpr(
            *(_shown(i, t) for i, t in enumerate(types))
        )
        return f"{types} {sorted(map(repr, rows.collect()))}"
    except (PySparkException, Py4JJavaError):
        return ""
