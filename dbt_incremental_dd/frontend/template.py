"""A query's own text with its base relations left open. Nothing else of the text is touched, so its meaning is not."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.parsed import ParsedQuery
from dbt_incremental_dd.frontend.relations import base_tables, relation_of
from dbt_incremental_dd.frontend.scope import CATALOG
from dbt_incremental_dd.logical.dialect import TABLE_QUERY, VerbatimSpark


def template(query: ParsedQuery, keys: Mapping[str, object] | Collection[str]) -> tuple[str, tuple[str, ...]]:
    """The text for ``str.format``, and the relation keys of ``{0}``, ``{1}``, ...

    Raises UnsupportedSQL where a relation is not among ``keys``.
    """
    order: dict[str, int] = {}
    edits: list[tuple[int, int, str]] = []
    for table in base_tables(query.tree):
        key = relation_of(table).key
        if key not in keys:
            raise UnsupportedSQL(f"it reads {key}, which is not known", "Use ref() or source().")
        number = order.setdefault(key, len(order))
        alias = "" if table.alias else f" AS `{table.name.replace('`', '``')}`"
        start, end = _span(table.parts)
        keyword = table.meta.get(TABLE_QUERY)
        relation = f"{{{number}}}{alias}"
        edits.append((start, end, relation) if keyword is None else (keyword, end, f"SELECT * FROM {relation}"))
    edits += _qualifiers(query.tree)
    return _spliced(query.sql, edits), tuple(order)


def block_template(tree: exp.Expr) -> tuple[str, tuple[str, ...]]:
    """The same for a part of a query, given as a tree of its own: its text is printed from the tree."""
    tree = tree.copy()
    order: dict[str, int] = {}
    full = _full_names(tree)
    for column in tree.find_all(exp.Column):
        _unqualify(column, _superfluous(column, full))
    for table in list(base_tables(tree)):
        number = order.setdefault(relation_of(table).key, len(order))
        if not table.alias:
            alias = table.args.get("alias") or exp.TableAlias()
            alias.set("this", exp.to_identifier(table.name, quoted=True))
            table.set("alias", alias)
        table.set("this", exp.to_identifier(f"dd_input_{number}_"))
        table.set("db", None)
        table.set("catalog", None)
    text = tree.sql(dialect=VerbatimSpark, comments=False, normalize_functions=False)
    text = text.replace("{", "{{").replace("}", "}}")
    for number in range(len(order)):
        text = text.replace(f"dd_input_{number}_", f"{{{number}}}")
    return text, tuple(order)


def _full_names(tree: exp.Expr) -> set[tuple[str, ...]]:
    """Names of more than one part under which base tables stand in FROM."""
    found = {tuple(part.name.lower() for part in table.parts) for table in base_tables(tree) if len(table.parts) > 1}
    return found | {(CATALOG, *name) for name in found if len(name) == 2}


def _superfluous(column: exp.Column, full: set[tuple[str, ...]]) -> int:
    """How many parts of a column's name stand before its table."""
    names = tuple(part.name.lower() for part in column.parts)
    return next((length - 1 for length in (3, 2) if len(names) > length and names[:length] in full), 0)


def _unqualify(column: exp.Column, count: int) -> None:
    rest = list(column.parts[count:]) if count else []
    for key, part in zip(("this", "table", "db", "catalog"), reversed(rest), strict=False):
        column.set(key, part)
    for key in ("table", "db", "catalog")[len(rest) - 1 :] if rest else ():
        column.set(key, None)


def _qualifiers(tree: exp.Expr) -> list[tuple[int, int, str]]:
    """Columns qualified by a base table's full name lose all of it but the table."""
    full = _full_names(tree)
    edits = []
    for column in tree.find_all(exp.Column):
        count = _superfluous(column, full)
        if count:
            edits.append((column.parts[0].meta["start"], column.parts[count].meta["start"], ""))
    return edits


def _span(parts: list[exp.Expr]) -> tuple[int, int]:
    return parts[0].meta["start"], parts[-1].meta["end"] + 1


def _spliced(sql: str, edits: list[tuple[int, int, str]]) -> str:
    pieces, position = [], 0
    for start, end, text in sorted(edits):
        pieces.append(sql[position:start].replace("{", "{{").replace("}", "}}"))
        pieces.append(text)
        position = end
    pieces.append(sql[position:].replace("{", "{{").replace("}", "}}"))
    return "".join(pieces).strip().rstrip(";")
