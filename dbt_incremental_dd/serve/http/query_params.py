"""The query parameters of the HTTP routes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header, Query

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.errors import ConfigError, FrontierError
from dbt_incremental_dd.core.time import parse_time
from dbt_incremental_dd.duck.sql import relation_name
from dbt_incremental_dd.subscribe.selection import Selection
from dbt_incremental_dd.subscribe.shape import Shape
from dbt_incremental_dd.subscribe.subscription import Start

AsOf = Annotated[str | None, Query(description="ISO timestamp or ms since 1970 (default: the latest final time)")]
Select = Annotated[str | None, Query(description="columns, with expressions of them (default: all)")]
Where = Annotated[str | None, Query(description="a condition on the columns")]


@dataclass(frozen=True)
class SubscribeParams:
    """Where a subscription starts, and its shape."""

    as_of: str | None
    snapshot: bool
    up_to: str | None
    progress: bool
    select: str | None
    where: str | None
    key: tuple[str, ...]
    last_event_id: str | None

    def start(self, collection: Collection) -> Start:
        """Where the subscription starts. A client that reconnects (``Last-Event-ID``) continues where it was, or starts
        over if the history from there on has been compacted."""
        up_to = None if self.up_to is None else parse_time(self.up_to)
        if self.last_event_id:
            try:
                at = int(self.last_event_id)
                collection.frontiers.require(at, collection.name)
                return Start(at, snapshot=False, up_to=up_to)
            except (ValueError, FrontierError):
                return Start(up_to=up_to)
        return Start(None if self.as_of is None else parse_time(self.as_of), self.snapshot, up_to)

    def shape(self, collection: Collection) -> Shape:
        """The subscription's filter, projection and key. Raises QueryError or ConfigError if they are invalid."""
        names = {name.lower() for name in collection.schema.names}
        missing = [name for name in self.key if name.lower() not in names]
        if missing and self.select is None:
            raise ConfigError(
                f"{collection.name} has no column {', '.join(missing)}", f"It has {', '.join(collection.schema.names)}."
            )
        if self.select is None and self.where is None:
            return Shape(key=self.key)
        return Shape(Selection(select_from(collection, self.select, self.where)), self.key)


async def subscribe_params(
    as_of: AsOf = None,
    *,
    snapshot: Annotated[bool, Query(description="begin with the rows as of then")] = True,
    up_to: Annotated[str | None, Query(description="where it ends, exclusive (default: never)")] = None,
    progress: Annotated[bool, Query(description="report each advance of the frontier")] = False,
    select: Select = None,
    where: Where = None,
    key: Annotated[list[str] | None, Query(description="columns each of whose values has one row")] = None,
    last_event_id: Annotated[str | None, Header(description="the last `id` of a stream that broke off")] = None,
) -> SubscribeParams:
    """A FastAPI dependency that reads the parameters of a subscription."""
    columns = tuple(name.strip() for part in key or () for name in part.split(",") if name.strip())
    return SubscribeParams(
        as_of, snapshot, up_to, progress=progress, select=select, where=where, key=columns, last_event_id=last_event_id
    )


SubscribeQuery = Annotated[SubscribeParams, Depends(subscribe_params)]


def select_from(collection: Collection, select: str | None, where: str | None) -> str:
    """A SELECT of a collection's rows. Each part is on lines of its own, so that a comment ends with its part."""
    condition = f"\nWHERE (\n{where}\n)" if where else ""
    return f"SELECT {select or '*'}\nFROM {relation_name(collection.name)}{condition}"
