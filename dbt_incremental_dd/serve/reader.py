"""The gate: what one client may read. The protocols have no other way to collections, rows and subscriptions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa

from dbt_incremental_dd.api import Collection, Database
from dbt_incremental_dd.query.session import Session
from dbt_incremental_dd.serve.hub import Follower, Hub
from dbt_incremental_dd.serve.query_pool import QueryPool
from dbt_incremental_dd.serve.usage import Usage
from dbt_incremental_dd.serve.users.user import User
from dbt_incremental_dd.subscribe.condition import Condition
from dbt_incremental_dd.subscribe.shape import Shape
from dbt_incremental_dd.subscribe.subscription import Start
from dbt_incremental_dd.trace.arrow_reader import updates_schema

T = TypeVar("T")


class Reader:
    """What ``user`` may read. ``usage``: the access for which it is read."""

    def __init__(self, hub: Hub, queries: QueryPool, user: User, usage: Usage) -> None:
        self.database: Database = hub.database.restricted(user.rights)
        self.queries = queries
        self.user = user
        self.usage = usage
        self._hub = hub

    def find(self, name: str) -> Collection:
        """As ``Database.find``, and notes the collection in the usage."""
        self.usage.collection = name
        found = self.database.find(name)
        self.usage.collection = found.name
        return found

    def session(self) -> Session:
        """A session for SELECTs over the collections and rows that the user may read."""
        return self.queries.session(self.user.rights)

    def follow(self, collection: Collection, start: Start, shape: Shape) -> AbstractAsyncContextManager[Follower]:
        """As ``Hub.follow``, of the rows that the user may read. Raises StateError if the user may not read the
        collection."""
        found = self.database[collection.name]
        return self._hub.follow(found, start, self._readable(found, shape))

    def schema(self, collection: Collection, shape: Shape) -> pa.Schema:
        """The columns of a subscription."""
        return self._readable(collection, shape).apply(updates_schema(collection.place).empty_table()).schema

    def _readable(self, collection: Collection, shape: Shape) -> Shape:
        condition = self.user.rights.condition(collection.name)
        return shape if condition is None else replace(shape, readable=Condition(collection.name, condition))

    def has_all_rows(self, name: str) -> bool:
        """Whether the user may read all rows of the collection of this full name."""
        return self.user.rights.condition(name) is None

    def followers(self, name: str) -> int:
        """How many follow the collection of this full name here."""
        return self._hub.followers.get(name, 0)

    @property
    def is_closed(self) -> bool:
        """Whether the server ends."""
        return self._hub.is_closed

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Calls the function in one of the subscriptions' threads, and returns its result."""
        return await self._hub.run(function, *arguments)
