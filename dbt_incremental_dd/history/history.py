"""How a model keeps the history of its query's rows (slowly changing dimensions of type 2; Kimball and Ross, *The Data
Warehouse Toolkit*, 2013), and the columns that it adds to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import BOOLEAN, STRING, TIMESTAMP, Type

Role = Literal["id", "updated", "from", "to", "current", "deleted"]
"""What a column tells of an interval: an id of its own, the time of its row, where it begins, where it ends, whether it
is open, and whether it stands for a row that is gone."""

_TYPES: Mapping[Role, Type] = {
    "id": STRING,
    "updated": TIMESTAMP,
    "from": TIMESTAMP,
    "to": TIMESTAMP,
    "current": BOOLEAN,
    "deleted": STRING,
}
COLUMNS: tuple[tuple[Role, str], ...] = (("from", "valid_from"), ("to", "valid_to"), ("current", "is_current"))
"""Those of a model with a history."""

_TIME = r"'[\dT :.+-]+'"
_LITERAL = re.compile(
    rf"null|(?:date|timestamp)\s*{_TIME}|(?:date|timestamp|to_date|to_timestamp)\s*\(\s*{_TIME}\s*\)"
    rf"|cast\s*\(\s*(?:null|{_TIME})\s+as\s+(?:date|timestamp)\s*\)",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, kw_only=True)
class History:
    """The settings of a history.

    ``key``: the query's columns that tell whose version a row is; without any, equal rows are one and the same.
    ``time``: SQL over the query's columns, from when on a row is valid; empty: from the run on that it came in.
    ``compared``: the columns that make another version, ``*`` for all; without any, all do by the run's time, and the
    time alone by the data's.
    ``mends``: a row that is older than the latest one takes its place before that, and one of the same time replaces
    it; otherwise such rows are left out.
    ``deletes``: what becomes of the open interval of a key that has gone: it is closed, or stays, or is closed and
    followed by one that says so.
    ``open_end``: the end of an interval that has none: NULL, or the literal of a date or a time.
    ``columns``: those that are added, in this order.
    """

    key: tuple[str, ...] = ()
    time: str = ""
    compared: tuple[str, ...] = ()
    mends: bool = True
    deletes: Literal["close", "keep", "record"] = "close"
    open_end: str = "NULL"
    columns: tuple[tuple[Role, str], ...] = COLUMNS

    def __post_init__(self) -> None:
        """Raises ValueError for an end that is no literal."""
        if not _LITERAL.fullmatch(self.open_end.strip()):
            raise ValueError(f"{self.open_end!r} is no literal of a date or a time")

    @property
    def is_of_rows(self) -> bool:
        """Whether the rows with open intervals are the query's rows, in all of their columns."""
        return not self.key or not (self.time or self.compared or self.deletes == "keep")

    @property
    def names(self) -> Mapping[str, str]:
        """The added columns' names, by their roles."""
        return {str(role): name for role, name in self.columns}

    @property
    def end(self) -> str:
        """SQL for the end of an open interval, as a TIMESTAMP."""
        return f"CAST({self.open_end} AS TIMESTAMP)"

    def schema(self, query: Schema, model: str) -> Schema:
        """The query's columns and those that are added. Raises ConfigError where a column is there twice."""
        for role, name in self.columns:
            if query.find(name) is not None:
                raise ConfigError(
                    f"{model}: its query has a column called {name}, which its history adds",
                    f"Give that column another alias, or set another name for the one that is added ({role}).",
                )
        return query + Schema(tuple(Column(name, _TYPES[role]) for role, name in self.columns))

    def query_columns(self, stored: Schema) -> Schema:
        """Of the columns that are stored, the query's."""
        added = set(self.names.values())
        return Schema(tuple(column for column in stored if column.name not in added))

    def bound(self, query: Schema, model: str) -> History:
        """The same with columns' names as the query spells them. Raises ConfigError for a column that it has not."""
        key = tuple(_spelt(query, name, "unique_key", model) for name in self.key)
        named = query.names if self.compared == ("*",) else self.compared
        compared = tuple(_spelt(query, name, "check_cols", model) for name in named)
        return replace(self, key=key, compared=compared)

    def to_json(self) -> dict[str, Any]:
        """As manifests have it."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        lists = {name: list(values[name]) for name in ("key", "compared")}
        return {**values, **lists, "columns": [list(pair) for pair in self.columns]}

    @staticmethod
    def from_json(entries: Mapping[str, Any]) -> History:
        """Raises ValueError for what ``to_json`` does not write: anybody who can write to the state root may have."""
        try:
            columns = tuple((role, str(name)) for role, name in entries["columns"] if role in _TYPES)
            lists = {name: tuple(map(str, entries[name])) for name in ("key", "compared")}
            return History(**{**entries, **lists, "columns": columns})
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"a history is not one of this version's: {error}") from error


def _spelt(query: Schema, name: str, setting: str, model: str) -> str:
    column = query.find(name)
    if column is None:
        raise ConfigError(
            f"{model}: {setting} of its history names {name}, which is no column of its query",
            f"It has {', '.join(query.names)}.",
        )
    return column.name
