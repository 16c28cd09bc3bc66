"""A query's text with what is read of it: its tokens, its syntax tree, and what follows from these."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError

from dbt_incremental_dd.core.deep_nesting import allow_deep_nesting, nested_too_deeply
from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.place import at
from dbt_incremental_dd.frontend.reason import unclosed
from dbt_incremental_dd.frontend.relations import RelationName, base_tables, relation_of
from dbt_incremental_dd.logical.dialect import VerbatimSpark

_STREAMING = re.compile(r"\b(stream|watermark)\s+[\w`(]", re.IGNORECASE)


class NotParsed(UnsupportedSQL):
    """The SQL's syntax is not known here. Spark may know it."""


@dataclass(frozen=True)
class ParsedQuery:
    """A query. Its text is split into tokens once, and parsed once, when that is first asked for.

    All that is asked for is shared by everybody who has the query, and never changes: whoever edits a part of the tree,
    or puts it below a node of its own, copies it before.
    """

    sql: str

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """Raises SqlglotError for a text that has none."""
        return tuple(VerbatimSpark().tokenize(self.sql))

    @cached_property
    def tree(self) -> exp.Query | exp.Values:
        """Raises UnsupportedSQL, with the place, for a text that is not one query; NotParsed if Spark may know it."""
        allow_deep_nesting()
        try:
            trees = VerbatimSpark().parser().parse(list(self.tokens), self.sql)
        except RecursionError as error:
            raise nested_too_deeply() from error
        except Exception as error:  # on syntax that it knows in part, the parser fails in any way
            _refuse_streaming(self.sql)
            raise NotParsed(_unparsed(self.sql, error), "Check its syntax.") from error
        queries = [tree for tree in trees if tree is not None]
        if len(queries) != 1 or not isinstance(queries[0], exp.Query | exp.Values):
            raise UnsupportedSQL("the SQL is not one query", "A model is a single SELECT.")
        if any(table.name.lower() == "stream" and table.alias for table in queries[0].find_all(exp.Table)):
            _refuse_streaming(self.sql)
        return queries[0]

    @cached_property
    def words(self) -> tuple[tuple[str, str], ...]:
        """The tokens by type and text: the same for queries that differ in spaces and comments only."""
        return tuple((token.token_type.name, token.text) for token in self.tokens)

    @property
    def uses_pipes(self) -> bool:
        """Whether the query is written with ``|>``."""
        return "|>" in self.sql and any(token.token_type is TokenType.PIPE_GT for token in self.tokens)

    @cached_property
    def relations(self) -> tuple[RelationName, ...]:
        """Base tables, subqueries' included, each once; names of CTEs are not among them."""
        found = (relation_of(table) for table in base_tables(self.tree))
        return tuple({relation.key: relation for relation in found}.values())

    @cached_property
    def called(self) -> frozenset[str]:
        """Names of the functions that it calls, in lower case, with their schema where it is written."""
        return frozenset(_qualified(call).lower() for call in self.tree.find_all(exp.Anonymous))


@lru_cache(maxsize=200)
def parsed(sql: str) -> ParsedQuery:
    """The query of a text: one value for each of the texts that are in use, so that none is parsed again. Never fails:
    what is wrong with a text is raised by what is asked of it."""
    return ParsedQuery(sql)


def _unparsed(sql: str, error: Exception) -> str:
    open_at = unclosed(sql)
    if open_at is not None:
        what = "comment" if sql[open_at] == "/" else f"quote {sql[open_at]}"
        return f"the SQL cannot be parsed: the {what} is not closed{at(sql, open_at)}"
    place = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    if not place.get("line"):
        return "the SQL cannot be parsed"
    near = f", near {place['highlight']}" if str(place.get("highlight") or "").strip() else ""
    return f"the SQL cannot be parsed at line {place['line']}, column {place['col']}{near}"


def _refuse_streaming(sql: str) -> None:
    found = _STREAMING.search(sql)
    if found:
        raise UnsupportedSQL(
            f"{found.group(1).upper()} is for Spark's streams{at(sql, found.start())}",
            "Read the relation itself: only what is new in it is computed.",
        )


def _qualified(call: exp.Anonymous) -> str:
    name, node = str(call.this), call.parent
    while isinstance(node, exp.Dot) and isinstance(node.this, exp.Identifier):
        name, node = f"{node.this.name}.{name}", node.parent
    return name
