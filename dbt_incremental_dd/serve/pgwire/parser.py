"""Parses statements. Those without a parser here are left to DuckDB, as a ``Select``; those that write are refused."""

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
    Select,
    Set,
    Show,
    Source,
    Statement,
    Subscribe,
    Transaction,
)
from dbt_incremental_dd.serve.pgwire.token_cursor import TokenCursor

_LISTS = ("TABLES", "SCHEMAS", "DATABASES", "COLUMNS")
_WRITES = (
    *("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "CREATE", "ALTER", "DROP", "COMMENT", "GRANT", "REVOKE"),
    *("VACUUM", "REINDEX", "REFRESH", "LOCK", "CALL", "DO", "ATTACH", "DETACH", "INSTALL", "LOAD", "EXPORT", "IMPORT"),
)


def parse(sql: str) -> Statement:
    """Parses one statement, which is not empty. Raises PgError or QueryError if it is invalid or not supported."""
    cursor = TokenCursor(sql)
    verb = cursor.keyword()
    if verb in _WRITES:
        raise PgError("25006", f"{verb} is refused: models are written by `dbt run` alone", "SELECT or SUBSCRIBE.")
    if verb == "EXPLAIN":
        raise PgError(FEATURE, "EXPLAIN is not supported", "`dbt-dd explain` shows the plan of a model.")
    if (verb == "SHOW" and cursor.keyword(1) in _LISTS) or verb not in _PARSERS:
        return Select(sql)
    cursor.take()
    made = _PARSERS[verb](cursor)
    cursor.end()
    return made


def _subscribe(cursor: TokenCursor) -> Subscribe:
    cursor.accept("TO")
    is_select = cursor.keyword() == "("
    select = cursor.parenthesized() if is_select else None
    collection = None if is_select else cursor.qualified_name()
    key: tuple[str, ...] = ()
    if cursor.accept("ENVELOPE"):
        cursor.expect("UPSERT", "(", "KEY")
        key = cursor.names()
        cursor.expect(")")
    options: dict[str, bool] = {}
    as_of = up_to = None
    while cursor.has_more:
        if cursor.accept("WITH", "("):
            options |= _flags(cursor)
        elif without := cursor.accept_any("WITH", "WITHOUT"):
            word = cursor.accept_any("SNAPSHOT", "PROGRESS")
            if not word:
                raise cursor.unexpected("SNAPSHOT")
            options[word] = without == "WITH"
        elif cursor.accept("AS", "OF"):
            as_of = time_of(cursor.until("UP", "WITH", "WITHOUT"))
        elif cursor.accept("UP", "TO"):
            up_to = time_of(cursor.until("AS", "WITH", "WITHOUT"))
        else:
            break
    return Subscribe(
        collection,
        select,
        key,
        progress=options.get("PROGRESS", False),
        snapshot=options.get("SNAPSHOT", True),
        as_of=as_of,
        up_to=up_to,
    )


def _flags(cursor: TokenCursor) -> dict[str, bool]:
    """Boolean options, up to and including the closing parenthesis."""
    options = {}
    while True:
        name = cursor.accept_any("PROGRESS", "SNAPSHOT")
        if not name:
            raise cursor.unexpected("PROGRESS or SNAPSHOT")
        cursor.accept("=")
        value = "TRUE" if cursor.keyword() in (",", ")") else cursor.take().text.upper()
        if value not in ("TRUE", "FALSE", "ON", "OFF"):
            raise PgError("22023", f"{name} is true or false, not {value}")
        options[name] = value in ("TRUE", "ON")
        if not cursor.accept(","):
            cursor.expect(")")
            return options


def _source(sql: str) -> Source:
    """The statement whose rows a cursor or a COPY returns."""
    made = parse(sql) if sql else None
    if not isinstance(made, Select | Subscribe):
        raise PgError(SYNTAX, "a SELECT or a SUBSCRIBE was expected")
    return made


def _declare(cursor: TokenCursor) -> Declare:
    name = cursor.name()
    while cursor.accept_any("BINARY", "INSENSITIVE", "ASENSITIVE", "NO", "SCROLL"):
        pass
    cursor.expect("CURSOR")
    hold = cursor.accept("WITH", "HOLD")
    if not hold:
        cursor.accept("WITHOUT", "HOLD")
    cursor.expect("FOR")
    return Declare(name, _source(cursor.rest()), hold)


def _fetch(cursor: TokenCursor) -> Fetch:
    if cursor.accept_any("BACKWARD", "PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE"):
        raise PgError(FEATURE, "cursors move forward only", "FETCH [FORWARD] n or ALL.")
    count: int | None = 1
    if not cursor.accept("NEXT"):
        cursor.accept("FORWARD")
        if cursor.accept("ALL"):
            count = None
        elif re.fullmatch(r"\d+", cursor.keyword()):
            count = int(cursor.take().text)
    cursor.accept_any("FROM", "IN")
    name, timeout = cursor.name(), None
    if cursor.accept("WITH"):
        cursor.expect("(", "TIMEOUT")
        cursor.accept("=")
        timeout = seconds(" ".join(t.text for t in cursor.until() if t.text.upper() != "INTERVAL"))
        cursor.expect(")")
    return Fetch(name, count, timeout)


def seconds(text: str) -> float:
    """The seconds of an interval: ``1s``, ``500 ms``, ``1 minute 30 seconds``, ``00:00:01.5``. Raises PgError for
    anything else."""
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


def _close(cursor: TokenCursor) -> Close:
    return Close(None if cursor.accept("ALL") else cursor.name())


def _copy(cursor: TokenCursor) -> Copy:
    if cursor.keyword() == "(":
        source = _source(cursor.parenthesized())
    else:
        names = cursor.until("FROM", "TO", "(")
        source = Select("SELECT * FROM " + "".join(cursor.sql[name.start : name.end + 1] for name in names))
        if cursor.keyword() == "(":
            source = Select(source.sql.replace("*", ", ".join(f'"{name}"' for name in cursor.names()), 1))
    if cursor.accept("FROM"):
        raise PgError("25006", "COPY FROM is refused: models are written by `dbt run` alone", "COPY (...) TO STDOUT.")
    cursor.expect("TO", "STDOUT")
    return _copy_options(source, cursor)


def _copy_options(source: Source, cursor: TokenCursor) -> Copy:
    """The COPY with its options, in Postgres' old or new syntax."""
    options: dict[str, str] = {}
    cursor.accept("WITH")
    in_parentheses = cursor.accept("(")
    while cursor.has_more and not cursor.accept(")"):
        option = cursor.take().text.upper()
        if option in ("CSV", "TEXT", "BINARY"):
            options["FORMAT"] = option.lower()
            continue
        if option not in ("FORMAT", "HEADER", "DELIMITER", "NULL"):
            raise PgError(FEATURE, f"COPY has no option {option}", "FORMAT, HEADER, DELIMITER and NULL.")
        cursor.accept_any("AS")
        has_value = cursor.has_more and cursor.keyword() not in (",", ")", "CSV", "TEXT", "HEADER", "DELIMITER", "NULL")
        options[option] = cursor.take().text if has_value or option == "FORMAT" else "true"
        if in_parentheses:
            cursor.accept(",")
    form = options.get("FORMAT", "text").lower()
    if form not in ("text", "csv"):
        raise PgError(FEATURE, f"COPY has no format {form}", "FORMAT text or csv.")
    defaults = ("\t", "\\N") if form == "text" else (",", "")
    header = options.get("HEADER", "false").lower() in ("true", "on", "1")
    delimiter = options.get("DELIMITER", defaults[0])
    if len(delimiter.encode()) != 1 or delimiter in '\r\n\\"':
        raise PgError("22023", "a COPY delimiter is one character, and no quote, backslash or end of line")
    return Copy(source, form, header, delimiter, options.get("NULL", defaults[1]))


def _begin(cursor: TokenCursor) -> Transaction:
    cursor.until()
    return Transaction("BEGIN")


def _commit(cursor: TokenCursor) -> Transaction:
    cursor.accept_any("WORK", "TRANSACTION")
    cursor.accept("AND", "NO", "CHAIN")
    return Transaction("COMMIT")


def _rollback(cursor: TokenCursor) -> Transaction:
    cursor.accept_any("WORK", "TRANSACTION")
    if cursor.accept("TO"):
        cursor.accept("SAVEPOINT")
        return Transaction("ROLLBACK TO", cursor.name())
    cursor.accept("AND", "NO", "CHAIN")
    return Transaction("ROLLBACK")


def _savepoint(cursor: TokenCursor) -> Transaction:
    return Transaction("SAVEPOINT", cursor.name())


def _release(cursor: TokenCursor) -> Transaction:
    cursor.accept("SAVEPOINT")
    return Transaction("RELEASE", cursor.name())


def _set(cursor: TokenCursor) -> Set:
    if not cursor.accept("SESSION", "CHARACTERISTICS"):
        cursor.accept_any("SESSION", "LOCAL")
    if cursor.accept("TIME", "ZONE"):
        name = "timezone"
    else:
        name = cursor.qualified_name()
        if not cursor.accept_any("=", "TO") and name not in ("as", "transaction", "names", "session", "role"):
            raise cursor.unexpected("= or TO")
    value = cursor.until()
    is_default = len(value) == 1 and value[0].token_type != TokenType.STRING and value[0].text.upper() == "DEFAULT"
    return Set("SET", name, None if is_default else " ".join(token.text for token in value).replace(" , ", ", "))


def _reset(cursor: TokenCursor) -> Set:
    return Set("RESET", None if cursor.accept("ALL") else _setting(cursor))


def _discard(cursor: TokenCursor) -> Set:
    if not cursor.accept_any("ALL", "PLANS", "SEQUENCES", "TEMP", "TEMPORARY"):
        raise cursor.unexpected("ALL")
    return Set("DISCARD")


def _show(cursor: TokenCursor) -> Show:
    return Show(_setting(cursor))


def _setting(cursor: TokenCursor) -> str:
    if cursor.accept("TIME", "ZONE"):
        return "timezone"
    if cursor.accept("TRANSACTION", "ISOLATION", "LEVEL"):
        return "transaction_isolation"
    return cursor.qualified_name().lower()


def _deallocate(cursor: TokenCursor) -> Deallocate:
    cursor.accept("PREPARE")
    return Deallocate(None if cursor.accept("ALL") else cursor.name())


_PARSERS: dict[str, Callable[[TokenCursor], Statement]] = {
    **{"SUBSCRIBE": _subscribe, "TAIL": _subscribe},
    **{"DECLARE": _declare, "FETCH": _fetch, "CLOSE": _close, "COPY": _copy},
    **{"BEGIN": _begin, "START": _begin, "COMMIT": _commit, "END": _commit, "ROLLBACK": _rollback, "ABORT": _rollback},
    **{"SAVEPOINT": _savepoint, "RELEASE": _release},
    **{"SET": _set, "RESET": _reset, "DISCARD": _discard, "SHOW": _show, "DEALLOCATE": _deallocate},
}
