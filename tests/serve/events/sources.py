"""Sources that take events, and clients that send them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.sources.intake import Intake, take_in
from dbt_incremental_dd.trace.arrow_reader import contents
from dbt_incremental_dd.trace.inbox import Inbox
from dbt_incremental_dd.trace.layout import Storage
from tests.observe.no_session import no_session

_CLIENT = httpx.Client(timeout=30, trust_env=False)
"""One for all, since it is slow to make."""
COLUMNS = {"id": "bigint", "v": "string"}


class EventSource:
    """A source that takes events, known to servers from the start. ``take`` brings it one step further."""

    def __init__(self, root: Path, name: str = "shop.clicks", **meta: Any) -> None:
        self.name = name
        self.storage = Storage(str(root))
        settings = {"connector": "http", "envelope": "append", **meta}
        self.spec = parse_source(name, name, settings, COLUMNS, str(root))
        self.inbox = Inbox(self.storage.collection(name))
        self.time = 100
        self.notes: list[str] = []
        self.take()

    def take(self) -> Intake:
        """One intake at the next time, without Spark."""
        self.time += 1
        return take_in(no_session(), self.storage, self.spec, self.time, self.notes.append)

    def rows(self) -> Counter[tuple[Any, ...]]:
        """The collection as a multiset."""
        table = contents(self.storage.collection(self.name), self.time)
        found: Counter[tuple[Any, ...]] = Counter()
        for row in table.to_pylist():
            found[row["id"], row["v"]] += row["dd_diff"]
        return found


def send(
    url: str,
    events: Sequence[Any] | str | bytes,
    key: str | None = None,
    source: str = "shop.clicks",
    content_type: str = "application/x-ndjson",
    **headers: str,
) -> httpx.Response:
    """Sends events, or a text as it is."""
    body = events if isinstance(events, str | bytes) else "".join(f"{json.dumps(one)}\n" for one in events)
    given = {"content-type": content_type, **headers, **({} if key is None else {"idempotency-key": key})}
    return _CLIENT.post(f"{url}/sources/{source}/events", content=body, headers=given)
