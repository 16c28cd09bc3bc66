"""Keywords that are names. Spark reserves none: ``SELECT offset, limit FROM t GROUP BY offset, limit`` is a query.

Rule ``nonReserved`` in Spark's ``SqlBaseParser.g4``, which holds in its default mode. ``window`` and the words of the
clock also name functions.
"""

from __future__ import annotations

from sqlglot import Token
from sqlglot import TokenType as T

_CLOCK = frozenset({T.CURRENT_DATE, T.CURRENT_TIMESTAMP})
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


def with_names(tokens: list[Token]) -> list[Token]:
    """The tokens, in which keywords that stand for a name are names. The first one begins a statement."""
    for i, token in enumerate(tokens):
        before, after = _type(tokens, i - 1), _type(tokens, i + 1)
        if before in _BEFORE and after is not T.L_PAREN and _is_operand(before, token, after):
            token.token_type = T.IDENTIFIER
        elif token.token_type in _CLOCK or (token.token_type is T.WINDOW and not _is_defined(tokens, i)):
            token.token_type = T.VAR
    return tokens


def _is_operand(before: T | None, token: Token, after: T | None) -> bool:
    """Whether it is a keyword that begins nothing else here, where an operand or a name has to stand."""
    if token.token_type in _LISTS:
        return after in _AFTER and (before, after) != (T.L_PAREN, T.DASH)
    is_if = token.token_type is T.VAR and token.text.upper() == "IF"
    return is_if or token.token_type in _STATEMENTS or token.token_type in _CLAUSES


def _is_defined(tokens: list[Token], i: int) -> bool:
    """Whether ``w AS (`` follows WINDOW."""
    return (_type(tokens, i + 2), _type(tokens, i + 3)) == (T.ALIAS, T.L_PAREN)


def _type(tokens: list[Token], i: int) -> T | None:
    return tokens[i].token_type if 0 <= i < len(tokens) else None
