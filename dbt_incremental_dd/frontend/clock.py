"""Spark's functions of the clock mean the time of the run: ``current_date`` is ``CAST(dd_now() AS DATE)``.

They are written so before a query is lowered. Nothing else of its text is touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import Token, TokenType, exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.parsed import ParsedQuery, parsed
from dbt_incremental_dd.frontend.place import at, place
from dbt_incremental_dd.logical.dialect import VerbatimSpark

_NOW, _TODAY = "dd_now()", "CAST(dd_now() AS DATE)"
_CALLS: Mapping[str, str] = {
    **dict.fromkeys(("current_timestamp", "now"), _NOW),
    **dict.fromkeys(("current_date", "curdate"), _TODAY),
    "unix_timestamp": f"unix_timestamp({_NOW})",
    "localtimestamp": f"CAST({_NOW} AS TIMESTAMP_NTZ)",
}
"""What a call without arguments means."""
NAMES: frozenset[str] = frozenset(_CALLS)
"""In lower case. Every Spark has them, and none of the user's own can take their place."""
_WITHOUT_PARENTHESES = ("current_timestamp", "current_date", "current_time")
_BUILTIN = ("builtin", "system.builtin")
REMEDY = "Write current_timestamp(), current_date() or localtimestamp(), which are the time of the run."
_WORDS = {"now": 0, "today": 0, "yesterday": -1, "tomorrow": 1}
"""Of literals like ``DATE 'today'``: days from the run's."""
_TIMES = ("date", "timestamp", "timestamp_ltz", "timestamp_ntz")
_READERS = (
    *_TIMES,
    "to_date",
    "to_timestamp",
    "to_timestamp_ltz",
    "to_timestamp_ntz",
    "try_to_date",
    "try_to_timestamp",
)


def reads_clock_otherwise(node: exp.Expr) -> str | None:
    """The name of a call that reads the clock, and cannot be written by the run's time: ``current_time()``, whose type
    is not stored, and text like ``'now'`` that is read as a time."""
    if isinstance(node, exp.Cast):
        kind = node.to.sql(dialect=VerbatimSpark).lower()
        return f"cast('{node.this.name}')" if kind in _TIMES and _is_word(node.this) else None
    if not isinstance(node, exp.Anonymous):
        return None
    name = str(node.this).lower()
    if name in _READERS and node.expressions and _is_word(node.expressions[0]):
        return f"{name}('{node.expressions[0].name}')"
    return "current_time" if name == "current_time" else None


def _is_word(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Literal) and bool(tree.is_string) and tree.name.strip().lower().split(" ")[0] in _WORDS


def with_run_time(query: ParsedQuery, inputs: Mapping[str, Input]) -> ParsedQuery:
    """The query with the run's time, ``dd_now()``, wherever it reads the clock; itself if it does not.

    Raises UnsupportedSQL where that cannot be told: ``current_date`` without parentheses is a column first, to Spark.
    """
    sql, edits = query.sql, list(_edits(query, inputs))
    if not edits:
        return query
    ends = [0, *(end for _, end, _ in edits)]
    starts = [*(start for start, _, _ in edits), len(sql)]
    texts = [*(text for _, _, text in edits), ""]
    return parsed("".join(sql[end:start] + text for end, start, text in zip(ends, starts, texts, strict=True)))


def _edits(query: ParsedQuery, inputs: Mapping[str, Input]) -> Iterator[tuple[int, int, str]]:
    """Start, end and replacement of each such expression, in the order of the text."""
    sql, tree, tokens = query.sql, query.tree, query.tokens
    calls = {int(call.meta["start"]) for call in tree.find_all(exp.Anonymous) if "start" in call.meta}
    columns = {int(c.this.meta["start"]): c for c in tree.find_all(exp.Column) if "start" in c.this.meta}
    for i, token in enumerate(tokens):
        name = token.text.lower()
        if token.start in calls and name in _CALLS and _is_empty_call(tokens, i):
            first = _from(tokens, i)
            if first is not None:
                yield tokens[first].start, tokens[i + 2].end + 1, _CALLS[name]
        elif token.start in columns and name in _WITHOUT_PARENTHESES and _stands_alone(tokens, i):
            is_column = name in _names(tree, inputs, columns[token.start])
            if is_column and (name == "current_time" or token.token_type is TokenType.IDENTIFIER):
                continue
            if name == "current_time":
                raise UnsupportedSQL(f"current_time gives another answer each time{at(sql, token.start)}", REMEDY)
            if is_column:
                raise UnsupportedSQL(
                    f"{name} is both a column and a function of the clock{at(sql, token.start)}",
                    f"Write {name}() for the time of the run; write the column with its table.",
                )
            yield token.start, token.end + 1, _CALLS[name]
        elif found := _literal(sql, token):
            yield token.start, token.end + 1, found


def _is_empty_call(tokens: Sequence[Token], i: int) -> bool:
    following = [token.token_type for token in tokens[i + 1 : i + 3]]
    return following == [TokenType.L_PAREN, TokenType.R_PAREN]


def _from(tokens: Sequence[Token], i: int) -> int | None:
    """Where the call's name begins; None where it is qualified by another schema than Spark's own."""
    first = i
    while first >= 2 and tokens[first - 1].token_type is TokenType.DOT:
        first -= 2
    qualifier = ".".join(token.text.lower() for token in tokens[first:i:2])
    return first if qualifier in ("", *_BUILTIN) else None


def _stands_alone(tokens: Sequence[Token], i: int) -> bool:
    """Whether the name has no other parts."""
    beside = [*tokens[max(i - 1, 0) : i], *tokens[i + 1 : i + 2]]
    return all(token.token_type is not TokenType.DOT for token in beside)


def _names(tree: exp.Expr, inputs: Mapping[str, Input], where: exp.Column) -> set[str]:
    """All names that columns have, in inputs and in the query; but ``current_date() AS current_date`` beside the column
    that is asked about names the same value."""
    aliases = [alias for alias in tree.find_all(exp.Alias) if not _is_same(alias, where)]
    found = [alias.alias for alias in aliases]
    found += [column.name for alias in tree.find_all(exp.TableAlias) for column in alias.columns]
    return {name.lower() for given in inputs.values() for name in given.schema.names} | {a.lower() for a in found}


def _is_same(alias: exp.Alias, where: exp.Column) -> bool:
    value = alias.this
    is_bare = isinstance(value, exp.Column) and len(value.parts) == 1
    is_call = isinstance(value, exp.Anonymous) and not value.expressions
    return (is_bare or is_call) and value.name.lower() == where.name.lower() and alias.parent is where.parent_select


def _literal(sql: str, token: Token) -> str | None:
    """What ``TIMESTAMP 'now'``, ``DATE 'today'`` and their like mean; None for other tokens."""
    kind, _, quoted = token.text.partition(" ")
    word = quoted.strip("'\"").strip().lower()
    first = word.split()[0] if word.split() else ""
    if kind.lower() not in _TIMES or first not in _WORDS:
        return None
    if word != first:
        raise UnsupportedSQL(f"{kind} '{word}'{place(sql, kind)}", "Use from_utc_timestamp over dd_now().")
    day = f"date_add({_TODAY}, {_WORDS[first]})"
    moment = _NOW if first == "now" else day
    return day if kind == "DATE" else f"CAST({moment} AS {kind})"
