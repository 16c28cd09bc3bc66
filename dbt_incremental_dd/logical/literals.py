"""Spark's literals as one token each, kept as they are written.

A literal's meaning depends on Spark's version and settings (escapes, time zones, the type of a
TIMESTAMP), so none is read here but plain numbers and strings. Grammar: ``constant`` in Spark's ``SqlBaseParser.g4``.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import Token, TokenType, exp

OPAQUE = TokenType.HEREDOC_STRING
"""The type of a token whose text is a literal as written; Spark has no other use for it."""

_TYPED = frozenset({"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "INTERVAL", "X"})
"""Words that make a literal of the string that follows."""
_SINGULAR = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND")
_UNITS = frozenset(name for unit in _SINGULAR for name in (unit, f"{unit}S"))
_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)
_SIGNS = (TokenType.DASH, TokenType.PLUS)


class Verbatim(exp.Expression, exp.Condition):
    """A literal whose ``this`` is its text."""

    arg_types = {"this": True}  # noqa: RUF012 - as sqlglot's classes declare it

    @property
    def is_interval(self) -> bool:
        """Whether it is an interval, of any units."""
        return str(self.this).startswith("INTERVAL")


def with_whole_literals(sql: str, tokens: list[Token]) -> list[Token]:
    """The tokens of ``sql`` with each literal as one: ``OPAQUE``, unless it is a number or a plain string."""
    tokens = _with_suffixes(tokens)
    made: list[Token] = []
    position = 0
    while position < len(tokens):
        count = _interval(tokens, position) or _typed(tokens, position) or _strings(tokens, position)
        if count:
            made.append(_merged(sql, tokens[position : position + count]))
        else:
            made.append(tokens[position])
        position += count or 1
    return made


def _with_suffixes(tokens: list[Token]) -> list[Token]:
    """``2L`` as one token again, not as ``2::BIGINT``: beside a decimal Spark types a literal by its digits."""
    kept: list[Token] = []
    for token in tokens:
        last = kept[-1] if kept else None
        if last is not None and last.token_type is TokenType.NUMBER and token.start == last.start:
            last.text += "" if token.token_type is TokenType.DCOLON else token.text
        else:
            kept.append(token)
    return kept


def _interval(tokens: list[Token], start: int) -> int:
    """How many tokens from ``start`` are ``INTERVAL 1 DAY -2 HOURS`` or ``INTERVAL '1-2' YEAR TO MONTH``; else 0."""
    if tokens[start].text.upper() != "INTERVAL" or tokens[start].token_type is TokenType.IDENTIFIER:
        return 0
    end = start + 1
    while width := _value_and_unit(tokens, end):
        end += width
        if end == start + 1 + width and _word(tokens, end) == "TO" and _word(tokens, end + 1) in _UNITS:
            return end + 2 - start
    return end - start if end > start + 1 else 0


def _value_and_unit(tokens: list[Token], start: int) -> int:
    end = start + (start < len(tokens) and tokens[start].token_type in _SIGNS)
    if end >= len(tokens) or tokens[end].token_type not in (TokenType.NUMBER, *_STRINGS):
        return 0
    end += max(1, _run_of_strings(tokens, end))
    return end + 1 - start if _word(tokens, end) in _UNITS else 0


def _typed(tokens: list[Token], start: int) -> int:
    """Of ``DATE '2020-01-01'`` and the like."""
    if tokens[start].token_type is TokenType.HEX_STRING:
        return 1
    if _word(tokens, start) not in _TYPED or tokens[start].token_type in (TokenType.IDENTIFIER, *_STRINGS):
        return 0
    strings = _run_of_strings(tokens, start + 1)
    return 1 + strings if strings else 0


def _strings(tokens: list[Token], start: int) -> int:
    """Of strings that stand side by side: they are one."""
    return _run_of_strings(tokens, start)


def _run_of_strings(tokens: list[Token], start: int) -> int:
    end = start
    while end < len(tokens) and tokens[end].token_type in _STRINGS:
        end += 1
    return end - start


def _word(tokens: list[Token], position: int) -> str:
    return tokens[position].text.upper() if position < len(tokens) else ""


def _merged(sql: str, tokens: list[Token]) -> Token:
    first, last = tokens[0], tokens[-1]
    if len(tokens) == 1 and first.token_type is TokenType.STRING and _is_plain(sql, first):
        return first
    text = " ".join(_written(sql, tokens))
    comments = [comment for token in tokens for comment in token.comments]
    return Token(OPAQUE, text, first.line, first.col, first.start, last.end, comments)


def _is_plain(sql: str, token: Token) -> bool:
    """Whether the string is the same in quotes of any kind."""
    return sql[token.start + 1 : token.end] == token.text and not set(token.text) & set("\\'\"")


def _written(sql: str, tokens: list[Token]) -> Iterator[str]:
    """Each token as it stands in the text; words in capitals, so that equal literals have equal texts."""
    for token in tokens:
        if token.token_type in (*_STRINGS, TokenType.HEX_STRING):
            yield sql[token.start : token.end + 1]
        else:
            yield token.text.upper()
