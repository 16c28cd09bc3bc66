"""Statements from their text. What is none of the parser's own is left to DuckDB, as a ``Query``; what would write is
refused."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import TokenType

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.time import parse_duration
from dbt_incremental_dd.query.as_of import time_of
from dbt_incremental_dd.serve.pgwire.errors import FEATURE, SYNTAX, PgError
from dbt_incremental_dd.serve.pgwire.statements import (
    Close,
    Copy,
    Deallocate,
    Declare,
    Fetch,
    Query,
    Set,
    Show,
    Source,
    Statement,
    Subscribe,
    Transaction,
)
from dbt_incremental_dd.serve.pgwire.words import Words

_LISTS = ("TABLES", "SCHEMAS", "DATABASES", "COLUMNS")
_WRITES = (
    *("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "CREATE", "ALTER", "DROP", "COMMENT", "GRANT", "REVOKE"),
    *("VACUUM", "REINDEX", "REFRESH", "LOCK", "CALL", "DO", "ATTACH", "DETACH", "INSTALL", "LOAD", "EXPORT", "IMPORT"),
)


def parse(sql: str) -> Statement:
    """One statement, which is not empty. Raises PgError or QueryError where it says nothing that is answered."""
    words = Words(sql)
    verb = words.keyword()
    if verb in _WRITES:
        raise PgError("25006", f"{verb} is refused: models are written by `dbt run` alone", "SELECT or SUBSCRIBE.")
    if verb == "EXPLAIN":
        raise PgError(FEATURE, "EXPLAIN is not answered", "`dbt-dd explain` shows the plan of a model.")
    if (verb == "SHOW" and words.keyword(1) in _LISTS) or verb not in _PARSERS:
        return Query(sql)
    words.take()
    made = _PARSERS[verb](words)
    words.end()
    return made


def _subscribe(words: Words) -> Subscribe:
    words.accept("TO")
    is_select = words.keyword() == "("
    select = words.parenthesized() if is_select else None
    collection = None if is_select else words.qualified_name()
    key: tuple[str, ...] = ()
    if words.accept("ENVELOPE"):
        words.expect("UPSERT", "(", "KEY")
        key = words.names()
        words.expect(")")
    told: dict[str, bool] = {}
    as_of = up_to = None
    while words.has_more:
        if words.accept("WITH", "("):
            told |= _flags(words)
        elif without := words.accept_any("WITH", "WITHOUT"):
            word = words.accept_any("SNAPSHOT", "PROGRESS")
            if not word:
                raise words.unexpected("SNAPSHOT")
            told[word] = without == "WITH"
        elif words.accept("AS", "OF"):
            as_of = time_of(words.until("UP", "WITH", "WITHOUT"))
        elif words.accept("UP", "TO"):
            up_to = time_of(words.until("AS", "WITH", "WITHOUT"))
        else:
            break
    return Subscribe(
        collection,
        select,
        key,
        progress=told.get("PROGRESS", False),
        snapshot=told.get("SNAPSHOT", True),
        as_of=as_of,
        up_to=up_to,
    )


def _flags(words: Words) -> dict[str, bool]:
    """Options that are true or false, up to the parenthesis that ends them."""
    told = {}
    while True:
        name = words.accept_any("PROGRESS", "SNAPSHOT")
        if not name:
            raise words.unexpected("PROGRESS or SNAPSHOT")
        words.accept("=")
        said = "TRUE" if words.keyword() in (",", ")") else words.take().text.upper()
        if said not in ("TRUE", "FALSE", "ON", "OFF"):
            raise PgError("22023", f"{name} is true or false, not {said}")
        told[name] = said in ("TRUE", "ON")
        if not words.accept(","):
            words.expect(")")
            return told


def _source(sql: str) -> Source:
    """What gives rows to a cursor or a copy."""
    made = parse(sql) if sql else None
    if not isinstance(made, Query | Subscribe):
        raise PgError(SYNTAX, "a SELECT or a SUBSCRIBE was expected")
    return made


def _declare(words: Words) -> Declare:
    name = words.name()
    while words.accept_any("BINARY", "INSENSITIVE", "ASENSITIVE", "NO", "SCROLL"):
        pass
    words.expect("CURSOR")
    hold = words.accept("WITH", "HOLD")
    if not hold:
        words.accept("WITHOUT", "HOLD")
    words.expect("FOR")
    return Declare(name, _source(words.rest()), hold)


def _fetch(words: Words) -> Fetch:
    if words.accept_any("BACKWARD", "PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE"):
        raise PgError(FEATURE, "cursors move forward only", "FETCH [FORWARD] n or ALL.")
    count: int | None = 1
    if not words.accept("NEXT"):
        words.accept("FORWARD")
        if words.accept("ALL"):
            count = None
        elif re.fullmatch(r"\d+", words.keyword()):
            count = int(words.take().text)
    words.accept_any("FROM", "IN")
    name, timeout = words.name(), None
    if words.accept("WITH"):
        words.expect("(", "TIMEOUT")
        words.accept("=")
        timeout = seconds(" ".join(t.text for t in words.until() if t.text.upper() != "INTERVAL"))
        words.expect(")")
    return Fetch(name, count, timeout)


def seconds(text: str) -> float:
    """An interval's: ``1s``, ``500 ms``, ``1 minute 30 seconds``, ``00:00:01.5``. Raises PgError for anything else."""
    total, left = 0.0, text.strip()
    if match := re.search(r"(\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?$", left):
        total = int(match[1]) * 3600 + int(match[2]) * 60 + float(match[3] or 0)
        left = left[: match.start()].strip()
    try:
        for number, unit in re.findall(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]+)", left):
            total += parse_duration(f"{number} {re.sub('^(s|ms|m)ecs?$', 's', unit)}") / 1000
    except ConfigError as error:
        raise PgError("22007", f"{text!r} is not an interval", error.remedy) from None
    if re.fullmatch(r"\d+(\.\d+)?", left):
        return total + float(left)
    if re.sub(r"\d+(?:\.\d+)?\s*[a-zA-Z]+", "", left).strip() or not text.strip():
        raise PgError("22007", f"{text!r} is not an interval", "Write a number and a unit, such as '500 ms'.")
    return total


def _close(words: Words) -> Close:
    return Close(None if words.accept("ALL") else words.name())


def _copy(words: Words) -> Copy:
    if words.keyword() == "(":
        source = _source(words.parenthesized())
    else:
        names = words.until("FROM", "TO", "(")
        source = Query("SELECT * FROM " + "".join(words.sql[name.start : name.end + 1] for name in names))
        if words.keyword() == "(":
            source = Query(source.sql.replace("*", ", ".join(f'"{name}"' for name in words.names()), 1))
    if words.accept("FROM"):
        raise PgError("25006", "COPY FROM is refused: models are written by `dbt run` alone", "COPY (...) TO STDOUT.")
    words.expect("TO", "STDOUT")
    return _copied(source, words)


def _copied(source: Source, words: Words) -> Copy:
    """With its options, in either of the forms that Postgres has for them."""
    told: dict[str, str] = {}
    words.accept("WITH")
    in_parentheses = words.accept("(")
    while words.has_more and not words.accept(")"):
        option = words.take().text.upper()
        if option in ("CSV", "TEXT", "BINARY"):
            told["FORMAT"] = option.lower()
            continue
        if option not in ("FORMAT", "HEADER", "DELIMITER", "NULL"):
            raise PgError(FEATURE, f"COPY has no option {option}", "FORMAT, HEADER, DELIMITER and NULL.")
        words.accept_any("AS")
        has_value = words.has_more and words.keyword() not in (",", ")", "CSV", "TEXT", "HEADER", "DELIMITER", "NULL")
        told[option] = words.take().text if has_value or option == "FORMAT" else "true"
        if in_parentheses:
            words.accept(",")
    form = told.get("FORMAT", "text").lower()
    if form not in ("text", "csv"):
        raise PgError(FEATURE, f"COPY has no format {form}", "FORMAT text or csv.")
    defaults = ("\t", "\\N") if form == "text" else (",", "")
    header = told.get("HEADER", "false").lower() in ("true", "on", "1")
    delimiter = told.get("DELIMITER", defaults[0])
    if len(delimiter.encode()) != 1 or delimiter in '\r\n\\"':
        raise PgError("22023", "a COPY delimiter is one character, and no quote, backslash or end of line")
    return Copy(source, form, header, delimiter, told.get("NULL", defaults[1]))


def _begin(words: Words) -> Transaction:
    words.until()
    return Transaction("BEGIN")


def _commit(words: Words) -> Transaction:
    words.accept_any("WORK", "TRANSACTION")
    words.accept("AND", "NO", "CHAIN")
    return Transaction("COMMIT")


def _rollback(words: Words) -> Transaction:
    words.accept_any("WORK", "TRANSACTION")
    if words.accept("TO"):
        words.accept("SAVEPOINT")
        return Transaction("ROLLBACK TO", words.name())
    words.accept("AND", "NO", "CHAIN")
    return Transaction("ROLLBACK")


def _savepoint(words: Words) -> Transaction:
    return Transaction("SAVEPOINT", words.name())


def _release(words: Words) -> Transaction:
    words.accept("SAVEPOINT")
    return Transaction("RELEASE", words.name())


def _set(words: Words) -> Set:
    if not words.accept("SESSION", "CHARACTERISTICS"):
        words.accept_any("SESSION", "LOCAL")
    if words.accept("TIME", "ZONE"):
        name = "timezone"
    else:
        name = words.qualified_name()
        if not words.accept_any("=", "TO") and name not in ("as", "transaction", "names", "session", "role"):
            raise words.unexpected("= or TO")
    said = words.until()
    is_default = len(said) == 1 and said[0].token_type != TokenType.STRING and said[0].text.upper() == "DEFAULT"
    return Set("SET", name, None if is_default else " ".join(token.text for token in said).replace(" , ", ", "))


def _reset(words: Words) -> Set:
    return Set("RESET", None if words.accept("ALL") else _setting(words))


def _discard(words: Words) -> Set:
    if not words.accept_any("ALL", "PLANS", "SEQUENCES", "TEMP", "TEMPORARY"):
        raise words.unexpected("ALL")
    return Set("DISCARD")


def _show(words: Words) -> Show:
    return Show(_setting(words))


def _setting(words: Words) -> str:
    if words.accept("TIME", "ZONE"):
        return "timezone"
    if words.accept("TRANSACTION", "ISOLATION", "LEVEL"):
        return "transaction_isolation"
    return words.qualified_name().lower()


def _deallocate(words: Words) -> Deallocate:
    words.accept("PREPARE")
    return Deallocate(None if words.accept("ALL") else words.name())


_PARSERS: dict[str, Callable[[Words], Statement]] = {
    **{"SUBSCRIBE": _subscribe, "TAIL": _subscribe},
    **{"DECLARE": _declare, "FETCH": _fetch, "CLOSE": _close, "COPY": _copy},
    **{"BEGIN": _begin, "START": _begin, "COMMIT": _commit, "END": _commit, "ROLLBACK": _rollback, "ABORT": _rollback},
    **{"SAVEPOINT": _savepoint, "RELEASE": _release},
    **{"SET": _set, "RESET": _reset, "DISCARD": _discard, "SHOW": _show, "DEALLOCATE": _deallocate},
}
