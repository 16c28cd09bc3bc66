"""A cursor over the tokens of one statement, for its parser."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, TokenType

from dbt_incremental_dd.query.as_of import tokens
from dbt_incremental_dd.serve.pgwire.errors import SYNTAX, PgError

_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER, TokenType.BYTE_STRING, TokenType.HEREDOC_STRING)


def split_statements(sql: str) -> list[str]:
    """The statements of a text, without empty ones. Raises QueryError if it cannot be tokenized."""
    found, made, begin = tokens(sql), [], 0
    for at, token in enumerate(found):
        if token.token_type == TokenType.SEMICOLON:
            made.append(found[begin:at])
            begin = at + 1
    return [sql[one[0].start : one[-1].end + 1] for one in [*made, found[begin:]] if one]


class TokenCursor:
    """Keywords are tokens that are not quoted, case-insensitive."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self._tokens: Sequence[Token] = tokens(sql)
        self._position = 0

    @property
    def has_more(self) -> bool:
        """Whether there is another token."""
        return self._position < len(self._tokens)

    def keyword(self, ahead: int = 0) -> str:
        """The next token, or the one ``ahead`` of it, in capitals; empty if it is quoted or missing."""
        at = self._position + ahead
        if at >= len(self._tokens) or self._tokens[at].token_type in _QUOTED:
            return ""
        return str(self._tokens[at].text).upper()

    def accept(self, *keywords: str) -> bool:
        """Consumes these keywords if they come next."""
        if all(self.keyword(ahead) == word for ahead, word in enumerate(keywords)):
            self._position += len(keywords)
            return True
        return False

    def accept_any(self, *keywords: str) -> str:
        """Consumes and returns the next keyword if it is one of these; otherwise returns an empty string."""
        word = self.keyword()
        if word and word in keywords:
            self._position += 1
            return word
        return ""

    def expect(self, *keywords: str) -> None:
        """Consumes these keywords. Raises PgError if others come next."""
        if not self.accept(*keywords):
            raise self.unexpected(" ".join(keywords))

    def unexpected(self, expected: str) -> PgError:
        """The error to raise if something else was expected."""
        if not self.has_more:
            return PgError(SYNTAX, f"syntax error at end of input: {expected} is missing")
        token = self._tokens[self._position]
        text = self.sql[token.start : token.end + 1]
        return PgError(SYNTAX, f'syntax error at or near "{text}": {expected} was expected')

    def end(self) -> None:
        """Raises PgError unless all tokens are consumed."""
        if self.has_more:
            raise self.unexpected("the end of the statement")

    def take(self) -> Token:
        """Consumes the next token. Raises PgError if there is none."""
        if not self.has_more:
            raise self.unexpected("more")
        self._position += 1
        return self._tokens[self._position - 1]

    def name(self) -> str:
        """An identifier, in lower case unless it is quoted. Raises PgError if there is none."""
        quoted = self.has_more and self._tokens[self._position].token_type == TokenType.IDENTIFIER
        if not quoted and not self.keyword()[:1].isidentifier():
            raise self.unexpected("a name")
        token = self.take()
        return str(token.text) if quoted else str(token.text).lower()

    def qualified_name(self) -> str:
        """Identifiers separated by dots."""
        name = self.name()
        while self.accept("."):
            name += f".{self.name()}"
        return name

    def names(self) -> tuple[str, ...]:
        """Identifiers in parentheses, separated by commas."""
        self.expect("(")
        found = [self.name()]
        while self.accept(","):
            found.append(self.name())
        self.expect(")")
        return tuple(found)

    def until(self, *keywords: str) -> list[Token]:
        """The tokens up to one of these keywords outside of parentheses, or up to the end."""
        begin, depth = self._position, 0
        while self.has_more and not (depth == 0 and self.keyword() in keywords):
            depth += self._depth()
            if depth < 0:
                break
            self._position += 1
        return list(self._tokens[begin : self._position])

    def parenthesized(self) -> str:
        """The text inside the parentheses that come next. Raises PgError if they are not closed."""
        self.expect("(")
        begin, depth = self._position, 1
        while self.has_more:
            depth += self._depth()
            self._position += 1
            if depth == 0:
                inside = self._tokens[begin : self._position - 1]
                return self.sql[inside[0].start : inside[-1].end + 1] if inside else ""
        raise self.unexpected(")")

    def rest(self) -> str:
        """The text from the next token to the end."""
        begin = self._position
        self._position = len(self._tokens)
        return self.sql[self._tokens[begin].start :] if begin < len(self._tokens) else ""

    def _depth(self) -> int:
        kind = self._tokens[self._position].token_type
        return int(kind == TokenType.L_PAREN) - int(kind == TokenType.R_PAREN)
