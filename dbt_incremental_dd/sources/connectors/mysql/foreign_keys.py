"""Foreign keys by which a change of one table changes others: InnoDB carries that out, and the log does not have it.

They are read from CREATE TABLE, which whoever may read a table may see.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dbt_incremental_dd.sources.connectors.mysql.connection import MysqlError, rows

if TYPE_CHECKING:
    from dbt_incremental_dd.sources.connectors.mysql.connection import Connection

_NAME = r"`((?:[^`]|``)+)`"
_FOREIGN_KEY = re.compile(rf"FOREIGN KEY \([^)]*\) REFERENCES (?:{_NAME}\.)?{_NAME} \(((?:{_NAME}(?:, )?)+)\)([^,\n]*)")
_REACHES = ("CASCADE", "SET NULL", "SET DEFAULT")


_COLUMN = re.compile(rf"^  {_NAME} ", re.MULTILINE)


@dataclass(frozen=True)
class Cascade:
    """``schema`` and ``table``, and which of its changes reach the other one: ``on_delete``; updates of ``columns``,
    which are at ``places`` among all of its columns."""

    schema: str
    table: str
    columns: tuple[str, ...]
    on_delete: bool
    on_update: bool
    places: tuple[int, ...] = ()


def cascades(connection: Connection, schema: str, table: str) -> tuple[Cascade, ...]:
    """What reaches the table, through other tables as well. Raises MysqlError where one of these cannot be read."""
    found: list[Cascade] = []
    statements: dict[tuple[str, str], str] = {}
    left = [(schema, table)]
    while left:
        one = left.pop()
        if one in statements:
            continue
        statements[one] = _statement(connection, one)
        own = list(_of(statements[one], one[0]))
        found += own
        left += [(cascade.schema, cascade.table) for cascade in own]
    return tuple(replace(cascade, places=_places(cascade, statements)) for cascade in found)


def _places(cascade: Cascade, statements: Mapping[tuple[str, str], str]) -> tuple[int, ...]:
    names = [_plain(name) for name in _COLUMN.findall(statements[cascade.schema, cascade.table])]
    return tuple(names.index(name) for name in cascade.columns)


def _statement(connection: Connection, name: tuple[str, str]) -> str:
    shown = ".".join("`" + part.replace("`", "``") + "`" for part in name)
    try:
        return str(rows(connection, f"SHOW CREATE TABLE {shown}")[0][1])
    except Exception as error:
        if getattr(error, "args", (0,))[0] != 1142:
            raise
        raise MysqlError(
            f"changes of {shown} reach its table by a foreign key, and the user may not read it",
            f"Run: GRANT SELECT ON {shown} TO the user of options.user.",
        ) from None


def _of(statement: str, schema: str) -> Iterator[Cascade]:
    for other, table, columns, _, rules in _FOREIGN_KEY.findall(statement):
        on_delete, on_update = (any(f"ON {what} {how}" in rules for how in _REACHES) for what in ("DELETE", "UPDATE"))
        if on_delete or on_update:
            names = tuple(_plain(name) for name in re.findall(_NAME, columns))
            yield Cascade(_plain(other) or schema, _plain(table), names, on_delete, on_update)


def _plain(name: str) -> str:
    return name.replace("``", "`")
