"""Text of the log, which is in its column's character set, as UTF-8: what the server itself makes of it."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import TYPE_CHECKING

from dbt_incremental_dd.sources.connectors.mysql.connection import MysqlError, rows

if TYPE_CHECKING:
    from dbt_incremental_dd.sources.connectors.mysql.connection import Connection

Decode = Callable[[bytes], bytes]

_SAME = ("utf8", "utf8mb3", "utf8mb4")
_WIDE = {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}
_IS_SINGLE = "SELECT 1 FROM information_schema.character_sets WHERE character_set_name = %s AND maxlen = 1"


def decoder(connection: Connection, charset: str) -> Decode | None:
    """What makes UTF-8 of a character set's bytes; None where they are UTF-8. Raises MysqlError for a set of several
    bytes a character that is no form of Unicode."""
    if charset in _SAME:
        return None
    if charset in _WIDE:
        return lambda data: data.decode(_WIDE[charset]).encode()
    if not rows(connection, _IS_SINGLE, charset):
        raise MysqlError(
            f"the character set {charset} is not read from the log",
            "Convert the column, or read without it: ALTER TABLE ... MODIFY ... CHARACTER SET utf8mb4.",
        )
    parts = ", ".join(f"CONVERT(_{charset} X'{byte:02X}' USING utf8mb4)" for byte in range(256))
    (found,) = rows(connection, f"SELECT {parts}")
    table = dict(enumerate(map(ord, found)))
    return lambda data: codecs.charmap_decode(data, "strict", table)[0].encode()
