"""Spark's SQL dialect with every function call kept word for word.

The stock dialect parses known functions into common forms and prints them in its own spelling. An expression's
meaning is Spark's alone, so here a call ``f(x)`` is nothing but a name and its arguments, and no clause is rewritten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, cast

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.generator import Generator
from sqlglot.parsers.spark import SparkParser

from dbt_incremental_dd.logical.literals import OPAQUE, Verbatim, with_whole_literals
from dbt_incremental_dd.logical.names import with_names
from dbt_incremental_dd.logical.pipes import Pipes
from dbt_incremental_dd.logical.precedence import WRITTEN, Plus, UnsignedRightShift

_OWN_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY", "POSITION")
_WITH_UNITS = ("DATEADD", "DATE_ADD", "DATEDIFF", "DATE_DIFF", "TIMESTAMPADD", "TIMESTAMPDIFF")
_UNITS = (
    *("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR", "HOUR", "MINUTE", "SECOND"),
    *("MILLISECOND", "MICROSECOND"),
)
TABLE_QUERY = "dd_table_query"
"""Under which a table of ``TABLE t`` keeps the position of TABLE."""
_REWRITTEN = (exp.Select, exp.From, exp.Pivot, exp.WithinGroup, exp.Array, exp.Table)


def _position(generator: Generator, call: exp.StrPosition) -> str:
    """``POSITION(a IN b)``; with a place to begin at it is another function's call."""
    text, part, start = call.this, call.args["substr"], call.args.get("position")
    if start is not None:
        return generator.func("LOCATE", part, text, start)
    return f"POSITION({generator.sql(part)} IN {generator.sql(text)})"


def _variant_path(generator: Generator, extract: exp.JSONExtract) -> str:
    """``v:a.b[0]['c d']``, as it was written."""
    path = ""
    for part in extract.expression.expressions:
        if isinstance(part, exp.JSONPathSubscript):
            path += "[*]" if isinstance(part.this, exp.JSONPathWildcard) else f"[{part.this}]"
        elif isinstance(part, exp.JSONPathKey):
            quoted = part.args.get("quoted") or not str(part.this).isidentifier()
            key = generator.sql(exp.to_identifier(str(part.this), quoted=True)) if quoted else str(part.this)
            path += f".{key}" if path else key
    return f"{generator.sql(extract, 'this')}:{path}"


def _with_unit(name: str) -> Callable[[SparkParser], exp.Expr]:
    """``dateadd(DAY, 1, x)``: its unit is a word, not a column."""

    def parse(parser: SparkParser) -> exp.Expr:
        word, after = parser._curr, parser._next
        unit = word is not None and word.text.upper() in _UNITS and after is not None and after.text == ","
        arguments: list[exp.Expr] = []
        if unit:
            arguments.append(exp.var(word.text))
            parser._advance(2)
        arguments += parser._parse_csv(lambda: parser._parse_lambda())
        if unit and len(arguments) != 3:
            arguments[0] = exp.column(word.text)
        return exp.Anonymous(this=name.lower(), expressions=arguments)

    return parse


def _literal(parser: SparkParser, token: Token) -> exp.Expr:
    return parser.expression(Verbatim(this=token.text), token)


class VerbatimSpark(Spark):
    """``sum(x)`` parses to ``Anonymous(this='sum')``; CAST, EXTRACT, CASE, ... keep their own syntax.

    Literals are those of ``literals``, operators bind as ``precedence`` has it, and types are kept as they are written.
    """

    def tokenize(self, sql: str, *args: Any, **options: Any) -> list[Token]:
        """A literal is one token; a keyword is a name where ``names`` says so."""
        return with_names(with_whole_literals(sql, super().tokenize(sql, *args, **options)))

    class Tokenizer(Spark.Tokenizer):
        # A doubled quote stands for itself, as a backslash before it does.
        STRING_ESCAPES: ClassVar = ["\\", "'", '"']

    class Parser(Pipes):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        STRING_PARSERS: ClassVar[dict[Any, Any]] = {**SparkParser.STRING_PARSERS, OPAQUE: _literal}
        PRIMARY_PARSERS: ClassVar[dict[Any, Any]] = {**SparkParser.PRIMARY_PARSERS, OPAQUE: _literal}
        # Only calls whose arguments have a syntax of their own; the others are plain calls in Spark.
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            **{name: parser for name, parser in SparkParser.FUNCTION_PARSERS.items() if name in _OWN_SYNTAX},
            **{name: _with_unit(name) for name in _WITH_UNITS},
        }
        ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}
        COLON_IS_VARIANT_EXTRACT = True
        # FOR follows an expression in PIVOT only.
        RANGE_PARSERS: ClassVar[dict[Any, Any]] = {
            token: parser for token, parser in SparkParser.RANGE_PARSERS.items() if token is not TokenType.FOR
        }

        def _parse_statement(self) -> exp.Expr | None:
            """``TABLE`` in front is no column's name where another name follows."""
            if self._is_table_query():
                return self._parse_query_modifiers(self._parse_select())
            return super()._parse_statement()

        def _parse_select_query(self, *args: Any, **options: Any) -> exp.Expr | None:
            """Also ``TABLE t``, as ``SELECT * FROM t``; the table knows where TABLE stands."""
            if not self._is_table_query():
                return super()._parse_select_query(*args, **options)
            start = self._curr.start
            self._advance()
            table = cast(exp.Table, self._parse_table_parts())
            table.meta[TABLE_QUERY] = start
            query = exp.Select(expressions=[exp.Star()]).from_(table, copy=False)
            query = self._parse_query_modifiers(query)
            return self._parse_set_operations(query) if options.get("parse_set_operation", True) else query

        def _is_table_query(self) -> bool:
            names = (TokenType.VAR, TokenType.IDENTIFIER)
            return self._curr.token_type is TokenType.TABLE and self._next.token_type in names

        def _parse_value(self, values: bool = True) -> exp.Tuple | None:
            """A row without parentheses has no alias: ``VALUES 1, 2 AS t(x)`` names the relation."""
            if self._curr is None or self._curr.token_type is TokenType.L_PAREN:
                return super()._parse_value(values)
            value = self._parse_assignment()
            return self.expression(exp.Tuple(expressions=[value])) if value else None

        def _parse_table_alias(self, alias_tokens: Any = None) -> exp.TableAlias | None:
            """Also ``r(x) MAX RECURSION LEVEL 5`` of a CTE."""
            alias = super()._parse_table_alias(alias_tokens)
            if alias is not None and self._match_text_seq("MAX", "RECURSION", "LEVEL"):
                alias.set("level", self._parse_number())
            return alias

        def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
            """A query in parentheses of its own is a value, as in ``x IN ((SELECT max(y) FROM t))``."""
            found = super()._parse_in(this, alias)
            query = found.args.get("query")
            if query is None or not isinstance(query.this, exp.Subquery):
                return found
            modifiers = [given for key, given in query.this.args.items() if given and key != "this"]
            return found if modifiers else self.expression(exp.In(this=found.this, expressions=[query.this]))

        def _parse_join(
            self, skip_join_token: bool = False, parse_bracket: bool = False, alias_tokens: Any = None
        ) -> exp.Join | None:
            """LEFT JOIN LATERAL without a condition gets no ON true, which is another join to Spark."""
            join = super()._parse_join(skip_join_token, parse_bracket, alias_tokens)
            if join is not None and join.side == "LEFT" and isinstance(join.this, exp.Lateral):
                was_written = self._prev.token_type is TokenType.TRUE
                if join.args.get("on") == exp.true() and not was_written:
                    join.set("on", None)
            return join

        def _parse_pivot_aggregation(self) -> exp.Expr | None:
            """Any expression of aggregates, as in Spark."""
            return self._parse_alias(self._parse_assignment())

        def _parse_pivot_in(self) -> exp.In:
            """Also ``(a, b) IN ((1, 2) AS x, ...)``."""
            if self._curr is None or self._curr.token_type is not TokenType.L_PAREN:
                return super()._parse_pivot_in()
            columns = exp.Tuple(expressions=self._parse_wrapped_csv(self._parse_column))
            if not self._match(TokenType.IN):
                self.raise_error("Expecting IN")
            values = self._parse_wrapped_csv(self._parse_pivot_value)
            return self.expression(exp.In(this=columns, expressions=values))

        def _parse_pivot_value(self) -> exp.Expr | None:
            value = self._parse_select_or_expression()
            self._match(TokenType.ALIAS)
            alias = self._parse_id_var()
            return self.expression(exp.PivotAlias(this=value, alias=alias)) if alias else value

    class Generator(Spark.Generator):  # type: ignore[misc, valid-type]
        EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type]] = set()
        TRANSFORMS: ClassVar = {
            **{kind: print_ for kind, print_ in Spark.Generator.TRANSFORMS.items() if kind not in _REWRITTEN},
            exp.JSONExtract: _variant_path,
            exp.StrPosition: _position,
            exp.NullSafeEQ: lambda self, e: self.binary(e, "<=>"),
            Verbatim: lambda self, e: str(e.this),
            Plus: lambda self, e: f"+{self.sql(e, 'this')}",
            exp.BitwiseLeftShift: lambda self, e: self.binary(e, "<<"),
            exp.BitwiseRightShift: lambda self, e: self.binary(e, ">>"),
            UnsignedRightShift: lambda self, e: self.binary(e, ">>>"),
        }

        def datatype_sql(self, expression: exp.DataType) -> str:
            """As it was written, where it was."""
            written = expression.meta.get(WRITTEN)
            return str(written) if written else str(super().datatype_sql(expression))

        def tablealias_sql(self, expression: exp.TableAlias) -> str:
            """With the level that ``_parse_table_alias`` has found."""
            level = expression.args.get("level")
            own = super().tablealias_sql(expression)
            return f"{own} MAX RECURSION LEVEL {self.sql(level)}" if level is not None else str(own)


def level_of(cte: exp.CTE) -> int | None:
    """The MAX RECURSION LEVEL that a CTE has."""
    level = cte.args["alias"].args.get("level")
    return None if level is None else int(level.name)
