"""A table of a database whose log is followed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import Type
from dbt_incremental_dd.sources.connectors.database_log.errors import DatabaseError


class LogColumn(Protocol):
    """A column by its name and Spark type."""

    @property
    def name(self) -> str:
        """As the database spells it."""

    @property
    def spark(self) -> Type:
        """The type that its values are stored in."""


class LogTable(ABC):
    """``columns``: those that are taken in; ``key``: those that identify a row, none where whole rows do."""

    columns: Sequence[LogColumn]
    key: tuple[str, ...]

    @property
    @abstractmethod
    def sql(self) -> str:
        """Its name in SQL."""

    @property
    @abstractmethod
    def shape(self) -> list[Any]:
        """As JSON, what stays the same as long as the log tells of every change of the rows."""

    @abstractmethod
    def arrays(self, columns: Sequence[Sequence[bytes | None]]) -> list[pa.ChunkedArray]:
        """The cells of all columns in Spark's types. Raises DatabaseError for a value that has no form there."""

    @property
    def records(self) -> Schema:
        """Its columns in Spark's types."""
        return Schema(tuple(Column(column.name, column.spark) for column in self.columns))

    @property
    def key_places(self) -> tuple[int, ...]:
        """Where the key's columns are among all."""
        names = [column.name for column in self.columns]
        return tuple(names.index(name) for name in self.key)


def require_names(table: str, names: Sequence[str], declared: Schema | None) -> None:
    """Raises DatabaseError where columns of the table cannot be a collection's, or a declared one is not there."""
    lower = [name.lower() for name in names]
    for given in declared or ():
        if given.name.lower() not in lower:
            raise DatabaseError(f"there is no column {given.name} in {table}", f"There are {', '.join(lower)}.")
    if not lower or len(set(lower)) < len(lower) or any(name.startswith("dd_") for name in lower):
        raise DatabaseError(
            f"the columns of {table} are none, differ in case alone, or begin with dd_: {', '.join(lower)}",
            "Rename them.",
        )


def require_columns(table: LogTable, stored: Schema | None) -> None:
    """Raises DatabaseError where the columns are not those that are stored."""
    if stored is None or stored == table.records:
        return
    was, now = ({column.name: column.type for column in schema} for schema in (stored, table.records))
    changes = [f"{name} came" for name in now if name not in was]
    changes += [f"{name} went" for name in was if name not in now]
    changes += [f"{name} was {was[name]} and is {now[name]}" for name in now if was.get(name, now[name]) != now[name]]
    raise DatabaseError(
        f"the columns of {table.sql} changed: {', '.join(changes) or 'their order'}",
        "Take it in anew: remove its folder under state_root, then run the models on it with --full-refresh.",
    )
