"""Whether a parsed query is all of its text, and all of it is looked at: parsing and lowering pass over some mistakes
for which Spark refuses a query."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import takewhile
from operator import is_not

from sqlglot import Token, exp

from dbt_incremental_dd.frontend.aggregate import find_aggregates
from dbt_incremental_dd.frontend.parsed import ParsedQuery
from dbt_incremental_dd.frontend.relations import is_local
from dbt_incremental_dd.logical.dialect import VerbatimSpark

_ADDED = Counter(dict.fromkeys(("AS", "INNER", "OUTER", "ASC", ";"), 1 << 20))
"""Words that may be printed where the text leaves them out."""
_SAME = {"<>": "!=", "==": "=", "!": "NOT", "MINUS": "EXCEPT", "DISTRIBUTE": "PARTITION", "SORT": "ORDER"}
_JOIN, _CAST = ("CROSS", "JOIN"), ("CAST", "(", ")")
"""What is printed for a comma between relations, and for ``::``."""
_ODD = re.compile(
    r"[(,]\s*[,)](?<!\(\))|[<>]\s+[<>=]|[!|&]\s+[=|&]"
    r"|(?:^|\bSELECT\b|\bALL\b|\bDISTINCT\b|[,(])\s*AS\b|\bAS\s*(?:[,)]|$|AS\b|FROM\b)"
    r"|\b(?!LEFT|RIGHT|FULL)\w+\s+OUTER\s+JOIN|\bGROUP\s+BY\s+(?:DISTINCT\b|\(\s*\()",
    re.IGNORECASE,
)
"""Nothing where something is listed or named, and operators with a space inside."""
_NAME = re.compile(r"`.*`|[A-Za-z_]\w*", re.ASCII | re.DOTALL)


def is_faithful(query: ParsedQuery) -> bool:
    """Whether the query's tree has the words of its text, and lowering looks at each of its parts, but for its own
    order (``orders_columns``)."""
    return _has_all_words(query) and not _ODD.search(query.sql) and not any(_unseen(query.sql, query.tree))


def orders_columns(query: ParsedQuery, names: Sequence[str]) -> bool:
    """Whether the query is ordered by its own columns, of these names, or lowering looks at its order."""
    tree, order = query.tree, query.tree.args.get("order")
    return order is None or not (isinstance(tree, exp.Query) and _orders_output(tree)) or _orders_by(order, names)


def _has_all_words(query: ParsedQuery) -> bool:
    """Whether nothing was left out and nothing made up."""
    text = query.tree.sql(dialect=VerbatimSpark, comments=False, normalize_functions=False)
    written, printed = _words(query.tokens), _words(VerbatimSpark().tokenize(text))
    missing, extra = written - printed, printed - written
    del missing[";"]
    commas, casts = missing.pop(",", 0), missing.pop("::", 0)
    expected = Counter({**dict.fromkeys(_JOIN, commas), **dict.fromkeys(_CAST, casts)})
    return not missing and extra - _ADDED == +expected


def _words(tokens: Iterable[Token]) -> Counter[str]:
    texts = (token.text.upper() for token in tokens)
    return Counter(_SAME.get(text, text) for text in texts)


def _unseen(sql: str, tree: exp.Expr) -> Iterator[bool]:
    """Whether each part of the query may hold a mistake that nobody would come upon."""
    used = {table.name.lower() for table in tree.find_all(exp.Table) if is_local(table)}
    for node in tree.walk():
        match node:
            case exp.Identifier():
                written = sql[node.meta["start"] : node.meta["end"] + 1] if "start" in node.meta else ""
                yield not _NAME.fullmatch(written)
            case exp.CTE():
                yield node.alias.lower() not in used
            case exp.Select():
                yield not node.expressions or bool(node.args.get("windows")) or _aggregates_alias(node)
                if isinstance(node.parent, exp.Exists):
                    yield not all(isinstance(item, exp.Star | exp.Literal) for item in node.expressions)
            case exp.Exists():  # no operand, but for AND, OR and NOT
                yield isinstance(node.parent, exp.Binary) and not isinstance(node.parent, exp.Connector)
            case exp.Group():
                yield bool(node.args.get("all")) == bool(node.expressions or _has_grouping_sets(node))
                yield any(isinstance(item, exp.Tuple) for item in node.expressions)
            case exp.Subquery():
                yield bool(node.alias) and not isinstance(node.parent, exp.From | exp.Join)
            case exp.Order() if isinstance(node.parent, exp.Query) and node is not tree.args.get("order"):
                yield _orders_output(node.parent) and not _orders_by(node, _names(node.parent))


def _names(query: exp.Query) -> list[str]:
    """The names of its columns, with ``*`` for those that are not known: it is known of one subquery or CTE."""
    names: list[str] = query.named_selects
    source = _only_source(query) if names == ["*"] else None
    if isinstance(source, exp.Subquery) and not source.alias_column_names:
        return _names(source.this)
    if isinstance(source, exp.Table) and is_local(source) and not source.alias_column_names:
        cte = _cte(source)
        return names if cte is None or cte.alias_column_names else _names(cte.this)
    return names


def _only_source(query: exp.Query) -> exp.Expr | None:
    """What ``SELECT *`` is from, if it is one thing, and all of its columns."""
    star, source = query.expressions, query.args.get("from_")
    others = any(query.args.get(clause) for clause in ("joins", "laterals", "pivots"))
    is_plain = isinstance(query, exp.Select) and len(star) == 1 and star[0] == exp.Star()
    return source.this if is_plain and not others and source is not None else None


def _cte(table: exp.Table) -> exp.CTE | None:
    """The CTE that the name is of: of the innermost WITH, and before what it is in."""
    below: exp.Expr = table
    node = table.parent
    while node is not None:
        with_ = node.args.get("with_")
        visible: Iterable[exp.Expr] = () if with_ is None or below is with_ else with_.expressions
        if isinstance(node, exp.With):
            visible = takewhile(partial(is_not, below), node.expressions)
        for cte in visible:
            if isinstance(cte, exp.CTE) and cte.alias.lower() == table.name.lower():
                return cte if isinstance(cte.this, exp.Query) else None
        below, node = node, node.parent
    return None


def _has_grouping_sets(group: exp.Group) -> bool:
    return any(group.args.get(name) for name in ("grouping_sets", "cube", "rollup"))


def _orders_output(query: exp.Query) -> bool:
    """Whether the order can only be of the query's columns: of distinct rows, or not looked at for want of a limit."""
    limit = query.args.get("limit")
    is_limited = isinstance(limit, exp.Limit) and isinstance(limit.expression, exp.Literal)
    return not is_limited or (isinstance(query, exp.Select) and bool(query.args.get("distinct")))


def _aggregates_alias(select: exp.Select) -> bool:
    """Whether an aggregate may be of what an alias before it names, and not of a column."""
    aliases: set[str] = set()
    for item in select.expressions:
        columns = (column for call in find_aggregates([item]) for column in call.find_all(exp.Column))
        if any(len(column.parts) == 1 and column.name.lower() in aliases for column in columns):
            return True
        aliases.add(item.alias.lower())
    return False


def _orders_by(order: exp.Order, columns: Sequence[str]) -> bool:
    """Whether the order is of a query's own columns, by their names or numbers."""
    names = [name.lower() for name in columns]
    numbers = set() if "*" in names else {str(number + 1) for number in range(len(names))}
    return all(
        item.name in numbers
        if isinstance(item, exp.Literal) and item.is_int
        else isinstance(item, exp.Column) and len(item.parts) == 1 and item.name.lower() in names
        for item in (item.this for item in order.expressions)
    )
