"""Rows that are read once: of a collection, by a condition or by values of its columns, or of any SELECT."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager

from dbt_incremental_dd.api import Collection, Database
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.query.session import Answer, Session
from dbt_incremental_dd.query.types import duckdb_type, identifier
from dbt_incremental_dd.serve.wanted import select_from
from dbt_incremental_dd.subscribe.plain import plain_rows

AT_ONCE = 4
"""Statements that are computed at a time; others wait."""


class Sessions:
    """Sessions that are used again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._idle: list[Session] = []
        self._turns = threading.BoundedSemaphore(AT_ONCE)

    @contextmanager
    def one(self) -> Iterator[Session]:
        """One for as long as the block runs."""
        with self._turns:
            session = self._idle.pop() if self._idle else Session(self._database.storage)
            try:
                yield session
            finally:
                self._idle.append(session)


def rows_of(
    collection: Collection, select: str | None, where: str | None, equal: Mapping[str, str]
) -> tuple[str, list[str]]:
    """The SELECT of a collection's rows, and its parameters. ``equal``: values of columns, as texts. Raises ConfigError
    where there is no such column."""
    conditions, values = [f"(\n{where}\n)"] if where else [], []
    for name, value in equal.items():
        column = collection.schema.find(name)
        if column is None:
            raise ConfigError(
                f"{collection.name} has no column {name}", f"It has {', '.join(collection.schema.names)}."
            )
        values.append(value)
        conditions.append(f"{identifier(column.name)} = ${len(values)}::{duckdb_type(column.json_type)}")
    return select_from(collection, select, " AND ".join(conditions) or None), values


def as_json(sessions: Sessions, sql: str, values: list[str], as_of: Time | None, limit: int) -> Generator[str]:
    """``{"as_of": ms, "columns": [...], "rows": [{...}], "more": bool}``, in parts. Raises what is wrong with the
    statement before the first."""
    with sessions.one() as session:
        answer = session.select(sql, values, as_of)
        yield f'{{"as_of": {json.dumps(answer.as_of)}, "columns": {json.dumps(answer.schema.names)}, "rows": ['
        yield from _rows(answer, limit)
        yield "}\n"


def _rows(answer: Answer, limit: int) -> Iterator[str]:
    told = 0
    for batch in answer.batches:
        rows = plain_rows(batch.slice(0, limit - told + 1))
        more, rows = len(rows) > limit - told, rows[: limit - told]
        text = ",".join(json.dumps(row) for row in rows)
        yield f"{',' if told and rows else ''}{text}"
        told += len(rows)
        if more:
            yield '], "more": true'
            return
    yield '], "more": false'
