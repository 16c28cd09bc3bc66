"""The base relations that a query reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.place import at
from dbt_incremental_dd.frontend.reason import unclosed
from dbt_incremental_dd.logical.dialect import VerbatimSpark

_STREAMING = re.compile(r"\b(stream|watermark)\s+[\w`(]", re.IGNORECASE)


@dataclass(frozen=True)
class Relation:
    """A relation's name as the query writes it, part by part and without quotes."""

    parts: tuple[str, ...]

    @property
    def key(self) -> str:
        """Its name for look-ups: lower case, joined by dots."""
        return ".".join(self.parts).lower()

    @property
    def sql(self) -> str:
        """Its name as SQL."""
        return ".".join("`" + part.replace("`", "``") + "`" for part in self.parts)


class NotParsed(UnsupportedSQL):
    """The SQL's syntax is not known here. Spark may know it."""


def parse(sql: str) -> exp.Expr:
    """The query's syntax tree. Raises UnsupportedSQL, with the place, where it is not one query."""
    try:
        trees = [tree for tree in sqlglot.parse(sql, dialect=VerbatimSpark) if tree is not None]
    except SqlglotError as error:
        _refuse_streaming(sql)
        raise NotParsed(_unparsed(sql, error), "Check its syntax.") from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Query | exp.Values):
        raise UnsupportedSQL("the SQL is not one query", "A model is a single SELECT.")
    if any(table.name.lower() == "stream" and table.alias for table in trees[0].find_all(exp.Table)):
        _refuse_streaming(sql)
    return trees[0]


def _unparsed(sql: str, error: SqlglotError) -> str:
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


@lru_cache(maxsize=1_000)
def words(sql: str) -> tuple[tuple[str, str], ...]:
    """The query's tokens by type and text: the same for queries that differ in spaces and comments only."""
    return tuple((token.token_type.name, token.text) for token in VerbatimSpark().tokenize(sql))


def uses_pipes(sql: str) -> bool:
    """Whether the query is written with ``|>``."""
    return "|>" in sql and any(token.token_type is TokenType.PIPE_GT for token in VerbatimSpark().tokenize(sql))


@lru_cache(maxsize=1_000)
def called(sql: str) -> frozenset[str]:
    """Names of the functions that the query calls, in lower case, with their schema where it is written."""
    return frozenset(_qualified(call).lower() for call in parse(sql).find_all(exp.Anonymous))


def _qualified(call: exp.Anonymous) -> str:
    name, node = str(call.this), call.parent
    while isinstance(node, exp.Dot) and isinstance(node.this, exp.Identifier):
        name, node = f"{node.this.name}.{name}", node.parent
    return name


def relations(sql: str) -> tuple[Relation, ...]:
    """Base tables of the query, subqueries included, each once; names of CTEs are not among them."""
    found = (relation_of(table) for table in base_tables(parse(sql)))
    return tuple({relation.key: relation for relation in found}.values())


def relation_of(table: exp.Table) -> Relation:
    """The name of a table reference."""
    return Relation(tuple(part.name for part in table.parts))


def base_tables(tree: exp.Expr) -> Iterator[exp.Table]:
    """References to base tables, in the order of the text."""
    for table in tree.find_all(exp.Table, bfs=False):
        if isinstance(table.this, exp.Identifier) and not is_local(table):
            yield table


def is_local(table: exp.Table) -> bool:
    """Whether the reference is to a CTE that is visible where it stands in its tree."""
    if len(table.parts) != 1:
        return False
    below: exp.Expr = table
    node = table.parent
    while node is not None:
        with_ = node.args.get("with_")
        if with_ is not None and below is not with_ and _defines(with_, table.name, before=None):
            return True
        if isinstance(node, exp.With) and _defines(node, table.name, before=None if node.recursive else below):
            return True
        below, node = node, node.parent
    return False


def _defines(with_: exp.Expr, name: str, before: exp.Expr | None) -> bool:
    for cte in with_.expressions:
        if cte is before:
            return False
        if cte.alias.lower() == name.lower():
            return True
    return False
