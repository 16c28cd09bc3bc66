"""Operators as Spark's parser binds them.

Tightest first: unary, ``* / % DIV``, ``+ - ||``, shifts, ``&``, ``^``, ``|``, comparisons (all
alike, from the left), one predicate (BETWEEN, IN, LIKE, IS), NOT, AND, OR.

Grammar: ``booleanExpression`` and ``valueExpression`` in Spark's ``SqlBaseParser.g4``. A tree whose parts were bound in
another way would be printed as it was written, but taken apart wrongly.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import TokenType, exp
from sqlglot.parser import IsPredicatePrecedence
from sqlglot.parsers.spark import SparkParser

WRITTEN = "dd_written"
"""Where a type's text is kept with it."""

_Operators = dict[TokenType, type[exp.Expr]]


class Plus(exp.Unary):
    """``+x``, which makes a number of a string."""


class UnsignedRightShift(exp.Expression, exp.Binary):
    """``x >>> n``."""


class Precedence(SparkParser):
    """Parses expressions and the types of casts."""

    IS_PREDICATE_PRECEDENCE = IsPredicatePrecedence.HIGH
    LEVELS: ClassVar[tuple[_Operators, ...]] = (
        {**SparkParser.EQUALITY, **SparkParser.COMPARISON},
        {TokenType.PIPE: exp.BitwiseOr},
        {TokenType.CARET: exp.BitwiseXor},
        {TokenType.AMP: exp.BitwiseAnd},
        {},  # shifts, which are several tokens
        {TokenType.PLUS: exp.Add, TokenType.DASH: exp.Sub, TokenType.DPIPE: exp.DPipe},
    )
    _SHIFTS: ClassVar = 4
    UNARY_PARSERS: ClassVar[dict[Any, Any]] = {
        **SparkParser.UNARY_PARSERS,
        TokenType.PLUS: lambda self: self.expression(Plus(this=self._parse_unary())),
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        **SparkParser.NO_PAREN_FUNCTION_PARSERS,
        "ANY": lambda self: self.expression(exp.Any(this=self._parse_primary())),
    }

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
        """What AND takes."""
        if self._match(TokenType.NOT):
            return self.expression(exp.Not(this=self._parse_equality()))
        return self._parse_range()

    def _parse_bitwise(self) -> exp.Expr | None:
        """What a predicate takes on either side: Spark's ``valueExpression``."""
        return self._parse_level(0)

    def _parse_level(self, level: int) -> exp.Expr | None:
        if level == len(self.LEVELS):
            return self._parse_factor()
        this = self._parse_level(level + 1)
        while (operator := self._operator(level)) is not None:
            this = self.expression(operator(this=this, expression=self._parse_level(level + 1)))
        return this

    def _operator(self, level: int) -> type[exp.Expr] | None:
        if level == self._SHIFTS:
            return self._shift()
        if level == 0 and self._curr.text == "!" and self._next.text in ("<", ">") and self._touch(self._next):
            self._advance(2)
            return exp.GTE if self._prev.text == "<" else exp.LTE
        return self.LEVELS[level][self._prev.token_type] if self._match_set(self.LEVELS[level]) else None

    def _shift(self) -> type[exp.Expr] | None:
        if self._match_pair(TokenType.LT, TokenType.LT):
            return exp.BitwiseLeftShift
        if not self._match_pair(TokenType.GT, TokenType.GT):
            return None
        return UnsignedRightShift if self._match(TokenType.GT) else exp.BitwiseRightShift

    def _touch(self, token: Any) -> bool:
        return bool(self._curr.end + 1 == token.start)

    def _parse_unary(self) -> exp.Expr | None:
        """A minus before a number is part of it: ``-2::STRING`` is a cast of -2."""
        if self._curr.token_type is TokenType.DASH and self._next.token_type is TokenType.NUMBER:
            index = self._index
            self._advance()
            number = exp.Neg(this=self._parse_primary())
            if self._match(TokenType.DCOLON, advance=False):
                return self._parse_column_ops(self.expression(number))
            self._retreat(index)
        return super()._parse_unary()

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
        """A primary expression. Literals are single tokens, so a type's name is a name."""
        if fallback_to_identifier:
            return super()._parse_type(parse_interval, fallback_to_identifier)
        this = self._parse_atom()
        this = self._parse_column() if this is None else this
        while this is not None and self._match(TokenType.COLLATE):
            this = self.expression(exp.Collate(this=this, expression=self._parse_column()))
        return this

    def _parse_dcolon(self) -> exp.Expr | None:
        """The type of ``x::type``, as CAST has it."""
        return self._parse_types(with_collation=True)

    def _parse_types(self, *args: Any, **options: Any) -> exp.Expr | None:
        """A type, with its text; one that only Spark knows is a name."""
        start = self._curr
        found = super()._parse_types(*args, **options)
        if found is None and start.token_type is TokenType.VAR and options.get("with_collation"):
            self._advance()
            found = exp.DataType(this=exp.DType.USERDEFINED, kind=start.text)
            if self._match(TokenType.L_PAREN):
                self._parse_csv(self._parse_primary)
                self._match_r_paren()
        if isinstance(found, exp.DataType):
            found.meta[WRITTEN] = self._find_sql(start, self._prev)
        return found
