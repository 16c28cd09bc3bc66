"""Queries written with ``|>``: what they read and call.

Each operator becomes a SELECT over what stands before it, with all of the operator's expressions somewhere in it. So
the tree names every relation and function. It is not the query's meaning, which is left to Spark.

Grammar: ``operatorPipeRightSide`` in Spark's ``SqlBaseParser.g4``.
"""

from __future__ import annotations

from typing import Any

from sqlglot import TokenType, exp

from dbt_incremental_dd.logical.precedence import Precedence

_LISTS = ("SELECT", "EXTEND", "SET", "DROP", "AGGREGATE")
"""Operators that have a list of expressions; an assignment reads like a comparison."""


class Pipes(Precedence):
    """Parses the operators behind ``|>``."""

    def _parse_select(self, *args: Any, **options: Any) -> exp.Expr | None:
        """VALUES may have operators, too."""
        query = super()._parse_select(*args, **options)
        if not isinstance(query, exp.Values) or not options.get("consume_pipe", True):
            return query
        if not self._match(TokenType.PIPE_GT, advance=False):
            return query
        return self._parse_pipe_syntax_query(exp.select("*").from_(query, copy=False))

    def _parse_pipe_syntax_query(self, query: exp.Query) -> exp.Query:
        while self._match(TokenType.PIPE_GT):
            before = query if isinstance(query, exp.Subquery) else query.subquery(copy=False)
            select = exp.select("*").from_(before, copy=False)
            start = self._index
            query = self.parse_set_operation(select) or self._pipe_operator(select, before)
            if self._index == start:
                self.raise_error("Expecting an operator behind |>")
        return query

    def _pipe_operator(self, select: exp.Select, before: exp.Subquery) -> exp.Query:
        word = self._curr.text.upper()
        if word in _LISTS:
            self._advance()
            self._match_texts(("DISTINCT", "ALL"))
            select.set("expressions", self._pipe_list())
        elif self._match(TokenType.ALIAS):
            before.set("alias", self.expression(exp.TableAlias(this=self._parse_id_var())))
        elif pivots := self._parse_pivots():
            before.set("pivots", pivots)
        elif sample := self._parse_table_sample():
            before.set("sample", sample)
        return self._parse_query_modifiers(select)

    def _pipe_list(self) -> list[exp.Expr]:
        """A list of expressions, any of which may have a name, and that of GROUP BY."""
        items = [] if self._curr.token_type is TokenType.GROUP_BY else self._parse_expressions()
        return items + self._parse_expressions() if self._match(TokenType.GROUP_BY) else items
