"""``SELECT ... AS OF t``: the time to read as of, at the end of a statement as in Materialize."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import Token, TokenType
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError

from dbt_incremental_dd.core.errors import QueryError
from dbt_incremental_dd.core.time import Time, parse_time
from dbt_incremental_dd.untrusted.parsed_select import MAX_CHARACTERS


class _Dialect(DuckDB):
    """DuckDB's dialect without commands: FETCH and CALL would turn all that follows into one token."""

    class Tokenizer(DuckDB.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = set()


def tokens(sql: str) -> list[Token]:
    """The tokens of a statement. Raises QueryError if it is too long or cannot be tokenized."""
    if len(sql) > MAX_CHARACTERS:
        raise QueryError(f"the statement has {len(sql)} characters, more than {MAX_CHARACTERS}", "Send it in parts.")
    try:
        sql.encode()
        return list(_Dialect().tokenize(sql))
    except (SqlglotError, UnicodeError) as error:
        raise QueryError(f"the statement cannot be read: {error}", "Check its quotes and comments.") from error


def split_as_of(sql: str) -> tuple[str, Time | None]:
    """The statement without its AS OF clause, and the clause's time in ms; None if there is none. Raises QueryError for
    an invalid time."""
    found = tokens(sql)
    depth, at = 0, None
    for number, token in enumerate(found[:-1]):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0 and token.text.upper() == "AS" and found[number + 1].text.upper() == "OF":
            at = number
    if at is None:
        return sql.strip().rstrip(";"), None
    clause = [token for token in found[at + 2 :] if token.token_type != TokenType.SEMICOLON]
    return sql[: found[at].start].rstrip(), time_of(clause)


def time_of(clause: list[Token]) -> Time:
    """The time of one value: ms since 1970, or a quoted timestamp, with or without a cast. Raises QueryError for
    anything else."""
    values = [token for token in clause if token.token_type in (TokenType.NUMBER, TokenType.STRING)]
    words = {token.text.upper() for token in clause if token not in values}
    if len(values) != 1 or words - {"TIMESTAMP", "TIMESTAMPTZ", "AT", "LEAST", "::"}:
        text = " ".join(token.text for token in clause) or "nothing"
        raise QueryError(f"AS OF {text} is not a time", "Write ms since 1970, or a quoted ISO 8601 timestamp.")
    value = values[0]
    try:
        return parse_time(value.text if value.token_type == TokenType.STRING else float(value.text))
    except ValueError:
        raise QueryError(f"AS OF {value.text[:60]} is not a time", "Write ms since 1970.") from None
