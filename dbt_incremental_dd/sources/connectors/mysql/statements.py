"""What a statement in the log means for tables that are followed: most of what changes rows is in the log as rows, but
not the tables' own changes, and not what a session has logged as statements.

In doubt a statement changes the tables that it names.
"""

from __future__ import annotations

import re
from enum import Enum, auto

_COMMENT = re.compile(r"\s+|/\*(?!M?!).*?\*/|/\*M?!\d*|--\s[^\n]*(\n|$)|#[^\n]*(\n|$)|\(", re.DOTALL)
_HARMLESS = re.compile(
    r"(BEGIN|COMMIT|START|SAVEPOINT|RELEASE|FLUSH|GRANT|REVOKE|ANALYZE|OPTIMIZE|CHECK|USE|SHOW|KILL|INSTALL|UNINSTALL"
    r"|LOCK|UNLOCK|PURGE|RESET|XA\s+(END|ROLLBACK|PREPARE)|SET\s+(?!STATEMENT\b)"
    r"|(CREATE|DROP|ALTER)\s+(OR\s+REPLACE\s+)?((DEFINER|ALGORITHM)\s*=\s*\S+\s+|SQL\s+SECURITY\s+\w+\s+"
    r"|(AGGREGATE|UNIQUE|FULLTEXT|SPATIAL|ONLINE|OFFLINE)\s+)*"
    r"(USER|ROLE|VIEW|FUNCTION|PROCEDURE|PACKAGE|TRIGGER|EVENT|SERVER|INDEX|KEY))\b",
    re.IGNORECASE,
)
_KINDS = re.compile(
    r"(?P<ROLLBACK>ROLLBACK)|(?P<XA_START>XA\s+(START|BEGIN))|(?P<XA_COMMIT>XA\s+COMMIT)"
    r"|(?P<ROWS>INSERT|UPDATE|DELETE|REPLACE|LOAD|CALL|DO|SELECT|WITH|VALUES|EXECUTE|HANDLER|IMPORT|SET\s+STATEMENT)\b",
    re.IGNORECASE,
)
_NAME = r"(?:`((?:[^`]|``)+)`|([\w$]+))"
_TRUNCATE = re.compile(
    rf"TRUNCATE\s+(?:TABLE\s+)?{_NAME}(?:\s*\.\s*{_NAME})?\s*(?:WAIT\s+\d+|NOWAIT)?\s*;?\s*(?:/\*.*\*/)?\s*",
    re.IGNORECASE | re.DOTALL,
)


class Kind(Enum):
    """What kind of statement it is."""

    HARMLESS = auto()
    ROLLBACK = auto()
    """What the transaction, or a part of it, has done is undone."""
    XA_START = auto()
    XA_COMMIT = auto()
    ROWS = auto()
    """Rows of whatever table may have changed."""
    TABLES = auto()
    """The tables that it names have changed."""


def kind_of(text: str) -> Kind:
    """The statement's kind."""
    text = text[_begin(text) :]
    if _HARMLESS.match(text):
        return Kind.HARMLESS
    found = _KINDS.match(text)
    return Kind[found.lastgroup] if found and found.lastgroup else Kind.TABLES


def truncated(schema: str, text: str) -> tuple[str, str] | None:
    """The table that a TRUNCATE empties, by its database and name; ``schema``: the current one."""
    found = _TRUNCATE.fullmatch(text[_begin(text) :])
    if found is None:
        return None
    first, second = (found[1] or found[2]), (found[3] or found[4])
    names = [name.replace("``", "`") for name in (first, second) if name]
    return (schema, names[0]) if len(names) == 1 else (names[0], names[1])


def names(text: str, name: str) -> bool:
    """Whether the statement may name it."""
    if not name.isascii() and not text.isascii():
        return True  # in whatever character set
    word = rf"(?<![\w$]){re.escape(name)}(?![\w$])|`{re.escape(name.replace('`', '``'))}`"
    return re.search(word, text, re.IGNORECASE) is not None


def _begin(text: str) -> int:
    at = 0
    while found := _COMMENT.match(text, at):
        at = found.end()
    return at
