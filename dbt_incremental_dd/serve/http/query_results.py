"""Responses to queries: rows of a collection by a condition or by column values, or of any SELECT."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.duck.sql import duckdb_type, identifier
from dbt_incremental_dd.query.engine import QueryResult
from dbt_incremental_dd.query.session import Session
from dbt_incremental_dd.serve.http.query_params import select_from
from dbt_incremental_dd.serve.reader import Reader
from dbt_incremental_dd.serve.usage import Usage
from dbt_incremental_dd.subscribe.json_values import json_rows

_HEADERS = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]


@dataclass(frozen=True)
class BoundQuery:
    """A SELECT, the values of its parameters, and the maximum number of rows to return."""

    sql: str
    values: Sequence[str]
    as_of: Time | None
    limit: int


def rows_query(
    collection: Collection, select: str | None, where: str | None, equal: Mapping[str, str]
) -> tuple[str, list[str]]:
    """The SELECT of a collection's rows, and the values of its parameters. ``equal``: texts that columns must be equal
    to. Raises ConfigError if there is no such column."""
    conditions, values = [f"(\n{where}\n)"] if where else [], []
    for name, value in equal.items():
        column = collection.schema.find(name)
        if column is None:
            raise ConfigError(
                f"{collection.name} has no column {name}", f"It has {', '.join(collection.schema.names)}."
            )
        values.append(value)
        conditions.append(f"{identifier(column.name)} = ${len(values)}::{duckdb_type(column.type)}")
    return select_from(collection, select, " AND ".join(conditions) or None), values


class RowsResponse(Response):
    """The response to a SELECT, computed while it is sent:

        {"as_of": ms, "columns": [...], "rows": [{...}], "more": bool}

    The computation stops if the client disconnects. Errors of the statement are raised before the response starts.
    """

    def __init__(self, reader: Reader, statement: BoundQuery) -> None:
        self.background = None
        self._queries = reader.queries
        self._session = reader.session()
        self._json_parts = _json_parts(self._session, statement, reader.usage)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self._send(send))
        watching = asyncio.create_task(_disconnected(receive))
        try:
            await asyncio.wait({sending, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()
            if not sending.done():
                sending.cancel()
            await asyncio.gather(sending, watching, return_exceptions=True)
            await asyncio.to_thread(self._json_parts.close)
        if not sending.cancelled():
            sending.result()

    async def _send(self, send: Send) -> None:
        # The first part is computed before the response starts, so that errors still set its status.
        part: str | None = await self._queries.begin(self._session.interrupt, next, self._json_parts)
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        while part is not None:
            await send({"type": "http.response.body", "body": part.encode(), "more_body": True})
            part = await self._queries.proceed(self._session.interrupt, next, self._json_parts, None)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _disconnected(receive: Receive) -> None:
    """Returns once the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _json_parts(session: Session, statement: BoundQuery, usage: Usage) -> Generator[str]:
    usage.sql, usage.as_of = statement.sql, statement.as_of
    answer = session.select(statement.sql, statement.values, statement.as_of)
    usage.as_of = answer.as_of
    try:
        head = f'{{"as_of": {json.dumps(answer.as_of)}, "columns": {json.dumps(answer.schema.names)}, "rows": ['
        rows = _json_batches(answer, statement.limit, usage)
        yield head + next(rows)
        yield from rows
        yield "}\n"
    finally:
        answer.close()


def _json_batches(answer: QueryResult, limit: int, usage: Usage) -> Iterator[str]:
    sent = 0
    for batch in answer.batches:
        rows = json_rows(batch.slice(0, limit - sent + 1))
        more, rows = len(rows) > limit - sent, rows[: limit - sent]
        text = ",".join(json.dumps(row) for row in rows)
        yield f"{',' if sent and rows else ''}{text}"
        sent += len(rows)
        usage.rows = sent
        if more:
            yield '], "more": true'
            return
    yield '], "more": false'
