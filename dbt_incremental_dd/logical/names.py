"""Keywords that are names. Spark reserves none: ``SELECT offset, limit FROM t GROUP BY offset, limit`` is a query.

Rule ``nonReserved`` in Spark's ``SqlBaseParser.g4``, which holds in its default mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import Token
from sqlglot import TokenType as T

_STATEMENTS = frozenset(
    {T.ALTER, T.CREATE, T.DROP, T.GRANT, T.INSERT, T.REVOKE, T.ROLLBACK, T.UNCACHE, T.DESCRIBE, T.INTO, T.FETCH, T.LOCK}
)
_CLAUSES = frozenset({T.LIMIT, T.OFFSET, T.FOR, T.OUTER, T.SERDE_PROPERTIES, T.TABLE_SAMPLE, T.COLLATE, T.OVERLAPS})
_LISTS = frozenset({T.VALUES, T.CUBE, T.ROLLUP, T.ANY})
"""They are followed by what they list."""
_OPERATORS = frozenset(
    {T.EQ, T.NEQ, T.LT, T.LTE, T.GT, T.GTE, T.NULLSAFE_EQ, T.PLUS, T.DASH, T.SLASH, T.MOD, T.DIV, T.DPIPE}
    | {T.AMP, T.PIPE, T.CARET, T.TILDE, T.AND, T.OR, T.NOT, T.BETWEEN, T.LIKE, T.RLIKE, T.ARROW}
)
_OPENING = frozenset(
    {T.SELECT, T.DISTINCT, T.COMMA, T.L_PAREN, T.WHERE, T.HAVING, T.QUALIFY, T.ON, T.CASE, T.WHEN, T.THEN, T.ELSE}
    | {T.ALIAS, T.GROUP_BY, T.ORDER_BY, T.PARTITION_BY, T.SORT_BY, T.CLUSTER_BY, T.DISTRIBUTE_BY}
)
_BEFORE = _OPENING | _OPERATORS
"""What an operand or a name follows, so that no clause begins there."""
_AFTER = (
    (_OPERATORS - {T.TILDE})
    | {T.STAR, T.COMMA, T.R_PAREN, T.FROM, T.ALIAS, T.IS, T.IN, T.WHEN, T.THEN, T.ELSE, T.END, T.ASC, T.DESC}
    | {T.WHERE, T.GROUP_BY, T.HAVING, T.ORDER_BY, T.LIMIT, T.UNION, None}
)
"""What no list begins with, but for a minus in parentheses. None: the text ends."""


def with_names(tokens: Sequence[Token]) -> list[Token]:
    """The tokens, in which keywords that stand for a name are identifiers. The first one begins a statement."""
    for before, token, after in _neighbours(tokens):
        if _is_name(before.token_type, token, after.token_type if after else None):
            token.token_type = T.IDENTIFIER
    return list(tokens)


def _neighbours(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token, Token | None]]:
    yield from zip(tokens, tokens[1:], [*tokens[2:], None], strict=False)


def _is_name(before: T, token: Token, after: T | None) -> bool:
    if before not in _BEFORE or after is T.L_PAREN:
        return False
    if token.token_type in _LISTS:
        return after in _AFTER and (before, after) != (T.L_PAREN, T.DASH)
    is_if = token.token_type is T.VAR and token.text.upper() == "IF"
    return is_if or token.token_type in _STATEMENTS or token.token_type in _CLAUSES
