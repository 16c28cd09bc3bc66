"""A SELECT as DuckDB parses it. It is allowed only if every part of its syntax tree is known to be harmless."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import duckdb

from dbt_incremental_dd.core.errors import QueryError
from dbt_incremental_dd.untrusted.functions import ALLOWED, TABLES, is_refused
from dbt_incremental_dd.untrusted.sized import FORMATS, SIZED

MAX_CHARACTERS = 256 * 1024
"""Maximum length of a statement."""

MAX_DEPTH = 64
"""Maximum depth of brackets, including those in strings and comments. DuckDB's parser takes cubic time for unclosed
brackets, and cannot be interrupted."""

_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_REFERENCES = {
    *("BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EXPRESSION_LIST", "CTE", "EMPTY", "EMPTY_FROM", "PIVOT"),
    "SHOW_REF",
}
_MODIFIERS = {
    *("ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "DISTINCT_MODIFIER"),
    *("ORDER_DEFAULT", "ASCENDING", "DESCENDING", "ORDER_ASC", "ORDER_DESC"),
}
_EXPRESSIONS = {
    *("BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION"),
    *("LAMBDA", "OPERATOR", "PARAMETER", "POSITIONAL_REFERENCE", "STAR", "SUBQUERY", "TYPE", "WINDOW"),
}
_SHOWN = {"tables", "schemas", "databases", "__show_tables_expanded"}
_BUILT_IN = {"main", "memory", "system", "temp", "pg_catalog", "information_schema"}
"""Catalogs and schemas that contain DuckDB's own functions."""
_DESCRIBED = {("information_schema", name) for name in ("tables", "columns", "schemata")}
_WIDE = re.compile(r"\d{5}|\*|\{[^}]*\{")


@dataclass(frozen=True)
class ParsedSelect:
    """``tables``: schema (empty if none is given) and name of each stored table that it reads, in lower case.
    ``defined``: names of its CTEs."""

    tables: tuple[tuple[str, str], ...]
    defined: frozenset[str]


@lru_cache(256)
def parse_select(sql: str, functions: frozenset[str] = frozenset()) -> ParsedSelect:
    """Parses a statement. ``functions``: further functions that it may call. Raises QueryError unless it is one
    read-only SELECT."""
    if len(sql) > MAX_CHARACTERS:
        raise QueryError(f"the statement has {len(sql)} characters, more than {MAX_CHARACTERS}", "Send it in parts.")
    if _depth(sql) > MAX_DEPTH:
        raise QueryError("the statement is nested too deeply", "Use WITH for some of it.")
    try:
        tree = _tree(sql)
        return _Walk(functions).check(tree)
    except RecursionError:
        raise QueryError("the statement is nested too deeply", "Use WITH for some of it.") from None


def _depth(sql: str) -> int:
    deepest = depth = 0
    for one in sql:
        depth = max(depth + (one in "([{") - (one in ")]}"), 0)
        deepest = max(deepest, depth)
    return deepest


def _tree(sql: str) -> Any:
    with _parser().cursor() as cursor:
        try:
            rows = cursor.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()
        except (duckdb.Error, UnicodeError) as error:
            raise QueryError(f"the statement cannot be read: {error}") from error
    tree = json.loads(rows[0][0])
    if tree.get("error"):
        if "Only SELECT" in str(tree.get("error_message")):
            raise QueryError("only SELECT and SUBSCRIBE are answered: models are written by `dbt run` alone")
        raise QueryError(str(tree.get("error_message")))
    if len(tree["statements"]) != 1:
        raise QueryError("one statement at a time is answered")
    return tree["statements"][0]


class _Walk:
    """Checks one syntax tree."""

    def __init__(self, functions: frozenset[str]) -> None:
        self._allowed = ALLOWED | functions
        self._tables: list[tuple[str, str]] = []
        self._defined: set[str] = set()
        self._in_from: set[int] = set()
        """Function nodes in FROM, which the walk visits again after their parents."""

    def check(self, tree: Any) -> ParsedSelect:
        """The tables that the tree reads. Raises QueryError for a part that is not known to be read-only."""
        for node in _nodes(tree):
            self._require(node)
        own = [(schema, name) for schema, name in self._tables if (schema, name) not in _DESCRIBED]
        return ParsedSelect(tuple(dict.fromkeys(own)), frozenset(self._defined))

    def _require(self, node: dict[str, Any]) -> None:
        kind = node.get("class", node.get("type"))
        if "class" in node:
            if kind not in _EXPRESSIONS:
                raise _permission_denied(f"{str(kind).lower()} expressions")
            if "function_name" in node and id(node) not in self._in_from:
                self._require_function(node, self._allowed)
        elif isinstance(kind, str):
            self._require_part(kind, node)
        for one in node.get("map", ()) if isinstance(node.get("map"), list) else ():
            self._defined.add(str(one.get("key", "")).lower())

    def _require_part(self, kind: str, node: dict[str, Any]) -> None:
        if kind.endswith("_TYPE_INFO"):
            return
        if kind not in _NODES | _REFERENCES | _MODIFIERS:
            raise _permission_denied(_PARTS.get(kind, kind.lower().replace("_", " ")))
        if kind == "BASE_TABLE":
            self._require_table(node)
        elif kind == "TABLE_FUNCTION":
            self._in_from.add(id(node["function"]))
            self._require_function(node["function"], TABLES)
        elif kind == "SHOW_REF" and (name := str(node.get("table_name", "")).strip('"')) and name not in _SHOWN:
            raise _permission_denied(f"SHOW {name}")

    def _require_table(self, node: dict[str, Any]) -> None:
        schema, name = str(node.get("schema_name", "")).lower(), str(node.get("table_name", "")).lower()
        if str(node.get("catalog_name", "")).lower() not in ("", "memory") or node.get("at_clause"):
            raise QueryError(f"Table with name {name} does not exist in {node.get('catalog_name')}")
        self._tables.append(("" if schema == "main" else schema, name))

    def _require_function(self, node: dict[str, Any], allowed: frozenset[str]) -> None:
        name = str(node.get("function_name", "")).lower()
        if name not in allowed:
            if is_refused(name) or name in self._allowed | TABLES:
                raise _permission_denied(f"function {name}")
            kind = "Table" if allowed is TABLES else "Scalar"
            raise QueryError(f"{kind} Function with name {name} does not exist")
        own = {str(node.get(part, "")).lower() for part in ("schema", "catalog")}
        if name in SIZED and own & _BUILT_IN:
            raise _permission_denied(f"function {name} of {' '.join(sorted(own - {''}))}")
        if name in FORMATS and not _is_narrow(node):
            raise _permission_denied(f"function {name} with a format that is not a short constant")


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def _is_narrow(node: dict[str, Any]) -> bool:
    """Whether the format is a constant that does not request a large width."""
    arguments = node.get("arguments") or [{"expression": child} for child in node.get("children", ())]
    first = arguments[0]["expression"] if arguments else {}
    if first.get("class") != "CONSTANT":
        return False
    literal = first.get("literal") or first.get("value") or {}
    return not _WIDE.search(str(literal.get("text", literal.get("value"))))


_PARTS = {"COPY_QUERY_NODE": "COPY", "INSERT_QUERY_NODE": "INSERT", "UPDATE_QUERY_NODE": "UPDATE"} | {
    "DELETE_QUERY_NODE": "DELETE",
    "MERGE_QUERY_NODE": "MERGE",
}


def _permission_denied(what: str) -> QueryError:
    return QueryError(
        f"permission denied for {what}",
        "A SELECT reads collections, by functions that compute from their arguments alone.",
    )


@cache
def _parser() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect(":memory:", config={"threads": 1, "memory_limit": "512MB", "temp_directory": ""})
    made.execute("SET enable_external_access = false")
    made.execute("SET lock_configuration = true")
    return made
