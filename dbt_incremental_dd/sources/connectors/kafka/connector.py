"""A Kafka topic as a source: what has been committed to it since the last run, up to its end at this one.

Progress is the next offset of each partition, and the topic's identity; it is stored with the updates, so that nothing
is lost or doubled, whatever ends when. The broker keeps nothing of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.sources.connectors.kafka.client import Extent, Span, extent, lost
from dbt_incremental_dd.sources.connectors.kafka.feed import Feed, KafkaSpec, feed_of
from dbt_incremental_dd.sources.connectors.kafka.records import read_records
from dbt_incremental_dd.sources.poll import PollRequest
from dbt_incremental_dd.sources.poll_result import PollResult
from dbt_incremental_dd.trace.layout import Storage

_INTERVAL = 0.2
"""Seconds between polls, each of which asks the broker for the partitions' ends."""
_PATIENCE = 1.0
"""Seconds that a broker has for such an answer."""
_ANEW = "Take it in anew: remove its folder under state_root, then run the models on it with --full-refresh."


SPEC = KafkaSpec


def poll_interval(spec: KafkaSpec) -> float:
    """Seconds between polls."""
    return _INTERVAL


def change_token(storage: Storage, spec: KafkaSpec) -> Hashable:
    """Where the topic's partitions end. Raises OSError where nobody tells."""
    try:
        found = extent(feed_of(spec), _PATIENCE)
    except SourceError as error:
        raise OSError(error.message) from error
    return found.id, tuple(sorted(found.end.items()))


def poll(request: PollRequest[KafkaSpec]) -> PollResult | None:
    """The messages between the last run's offsets and the topic's ends; None where there are none."""
    feed = feed_of(request.spec)
    now = extent(feed)
    spans = _spans(feed, now, request.progress)
    if request.stored is not None and all(span.start >= span.end for span in spans):
        return None
    found = read_records(request, feed, spans)
    offsets = {str(span.partition): span.end for span in spans}
    progress = {"topic": feed.topic, "id": now.id, "offsets": offsets}
    return PollResult(found.records, progress, scratch=found.scratch)


def _spans(feed: Feed, now: Extent, progress: Mapping[str, Any]) -> tuple[Span, ...]:
    """What is to be read of each partition. Raises SourceError where that is not there any more."""
    if not progress:
        starts = now.end if feed.from_latest else now.first
        return tuple(Span(p, start, now.end[p]) for p, start in sorted(starts.items()))
    if progress["topic"] != feed.topic:
        raise SourceError(
            f"source {feed.source}: it was taken in from topic {progress['topic']}, now it is {feed.topic}",
            f"Set the topic back. {_ANEW}",
        )
    offsets = {int(p): int(offset) for p, offset in progress["offsets"].items()}
    is_shorter = any(now.end.get(p, -1) < offset for p, offset in offsets.items())
    if progress["id"] != now.id or is_shorter:
        raise SourceError(
            f"source {feed.source}: topic {feed.topic} is not the one that was taken in so far: it was deleted and "
            "made again, or its end was lost",
            _ANEW,
        )
    spans = tuple(Span(p, offsets.get(p, 0), end) for p, end in sorted(now.end.items()))
    for span in spans:
        if now.first[span.partition] > span.start:
            raise lost(feed, span.partition, span.start, now.first[span.partition])
    return spans
