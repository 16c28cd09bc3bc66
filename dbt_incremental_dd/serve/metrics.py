"""Metrics for Prometheus: of accesses, counted as they end, and of collections, read when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.serve.usage import Usage

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_BUCKETS = (0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 600)
"""Upper bounds in seconds."""


@dataclass(frozen=True)
class CollectionFacts:
    """One collection. Times are in ms; ``rows``, ``updates`` and ``bytes`` are None if they are not to be told."""

    name: str
    since: Time
    at: Time
    rows: int | None
    updates: int | None
    bytes: int | None
    followers: int
    holds: Sequence[Time]


class Metrics:
    """An observer of accesses. Raises ConfigError if Prometheus' client is not installed."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        try:
            from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
        except ImportError as error:
            raise ConfigError(
                "metrics need Prometheus' client, which is not installed here",
                "Install it: pip install 'dbt-incremental-dd[metrics]'",
            ) from error
        self._registry = made = CollectorRegistry()
        by = ("protocol", "action")
        self._requests = Counter("dbt_dd_requests", "accesses that have ended", (*by, "status"), registry=made)
        self._seconds = Histogram("dbt_dd_request_seconds", "how long they took", by, buckets=_BUCKETS, registry=made)
        self._rows = Counter("dbt_dd_sent_rows", "rows and updates that have been sent", by, registry=made)
        self._bytes = Counter("dbt_dd_sent_bytes", "bytes that have been sent", by, registry=made)
        self._open = Gauge("dbt_dd_subscriptions", "subscriptions that are open", ("protocol",), registry=made)

    def began(self, usage: Usage) -> None:
        """Counts an open subscription."""
        self._open.labels(usage.protocol).inc()

    def ended(self, usage: Usage) -> None:
        """Counts an access."""
        labels = usage.protocol, usage.action or "page"
        self._requests.labels(*labels, usage.status).inc()
        self._seconds.labels(*labels).observe(usage.seconds)
        self._rows.labels(*labels).inc(usage.rows)
        self._bytes.labels(*labels).inc(usage.bytes)
        if usage.has_begun:
            self._open.labels(usage.protocol).dec()

    def text(self, collections: Iterable[CollectionFacts], now: Time) -> bytes:
        """All metrics in Prometheus' text format, with these collections as of ``now`` (ms)."""
        from prometheus_client import CollectorRegistry, generate_latest

        of_collections = CollectorRegistry()
        of_collections.register(_Collections(list(collections), now))
        return bytes(generate_latest(self._registry) + generate_latest(of_collections))


@dataclass(eq=False)
class _Collections:
    """A collector, as Prometheus' client has them."""

    facts: Sequence[CollectionFacts]
    now: Time

    def collect(self) -> Iterator[Metric]:
        """The metrics of all collections."""
        facts = self.facts
        yield _gauge("frontier_seconds", "the latest final time, in seconds since 1970", self._of("at", 1e-3))
        yield _gauge("since_seconds", "the earliest time that can be read", self._of("since", 1e-3))
        lags = {one.name: (self.now - one.at) / 1e3 for one in facts}
        yield _gauge("lag_seconds", "how far the latest final time is behind the clock", lags)
        yield _gauge("rows", "rows as of the latest final time", self._of("rows"))
        yield _gauge("updates", "stored updates", self._of("updates"))
        yield _gauge("stored_bytes", "bytes of the data files", self._of("bytes"))
        yield _gauge("followers", "clients that follow it here", self._of("followers"))
        yield _gauge("holds", "readers that hold history back", {one.name: len(one.holds) for one in facts})
        oldest = {one.name: (self.now - min(one.holds)) / 1e3 for one in facts if one.holds}
        yield _gauge("hold_seconds", "how far the reader that is furthest behind is behind the clock", oldest)

    def _of(self, field: str, scale: float = 1) -> dict[str, float]:
        values = {one.name: getattr(one, field) for one in self.facts}
        return {name: value * scale for name, value in values.items() if value is not None}


def _gauge(name: str, about: str, values: dict[str, float]) -> Metric:
    from prometheus_client.core import GaugeMetricFamily

    made = GaugeMetricFamily(f"dbt_dd_collection_{name}", about, labels=["collection"])
    for collection, value in values.items():
        made.add_metric([collection], value)
    return made
