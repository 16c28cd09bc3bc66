"""Sends changes again that a webhook's receiver has rejected: with the ids and bodies that they had, in order by key.

They may be older than what the receiver has got of their keys since; each has its ``time``, and the header RESENT.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.sinks.rejected import Rejected, RejectedFile
from dbt_incremental_dd.sinks.webhook_delivery import AT_ONCE, Delivery, NotDelivered, Sink

_FEWEST = 100
"""Changes after which the file is written anew at most; of many, a twentieth: all writes cost a few times the file."""


@dataclass(frozen=True)
class Resent:
    """How many changes were delivered, and how many were rejected again and stay in the file."""

    delivered: int
    rejected: int


def rejected(collection: Collection, sink: Sink) -> list[Rejected]:
    """The changes of this publication that were rejected, by time. Raises ConfigError if it has no file for them,
    SinkError if that cannot be read."""
    return _file(collection, sink).read()


def resend(collection: Collection, sink: Sink) -> Resent:
    """Sends them again. Those that are delivered leave the file; those that are rejected stay, with the new reason and
    one more attempt. Wherever it is killed, what has not been delivered is in the file.

    Raises ConfigError for invalid settings, SinkError if the receiver cannot be reached, or fails in all attempts: then
    the others stay as they are.
    """
    sink.require_url(collection.name)
    file = _file(collection, sink)
    with file.resending(), ThreadPoolExecutor(AT_ONCE) as pool, Delivery(collection.name, sink) as delivery:
        waiting = file.read()
        resending, most = _Resending(file, delivery), max(_FEWEST, len(waiting) // 20)
        try:
            for some in _rounds(waiting, most):
                list(pool.map(resending.send, some))
                reached("resend: sent")
                resending.raise_failure()
                resending.settle(most)
        finally:
            resending.settle()
    return Resent(resending.delivered, resending.rejected)


@dataclass
class _Resending:
    """Outcomes that the file does not have yet, and their counts so far."""

    file: RejectedFile
    delivery: Delivery
    done: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    failure: NotDelivered | None = None
    delivered: int = 0
    rejected: int = 0

    def send(self, one: Rejected) -> None:
        """Sends a change."""
        id = one.event.id
        try:
            reason = self.delivery.send(one.event, one.attempts)
        except NotDelivered as error:
            self.failure = self.failure or error
            if error.reason:
                self.failed[id] = error.reason
            return
        if reason is None:
            self.done.add(id)
        else:
            self.failed[id] = reason

    def raise_failure(self) -> None:
        """Raises why the receiver could not be reached, if so."""
        if self.failure is not None:
            raise self.failure

    def settle(self, fewest: int = 1) -> None:
        """Writes the outcomes, once there are so many."""
        if len(self.done) + len(self.failed) < fewest:
            return
        self.file.settle(self.done, self.failed)
        self.delivered, self.rejected = self.delivered + len(self.done), self.rejected + len(self.failed)
        self.done, self.failed = set(), {}


def _file(collection: Collection, sink: Sink) -> RejectedFile:
    if sink.rejected is None:
        raise ConfigError(
            f"{collection.name}: no file is named for changes that {sink.host} rejects", "Name it: --rejected FILE."
        )
    return RejectedFile(sink.rejected, collection.name, sink)


def _rounds(waiting: Sequence[Rejected], most: int) -> Iterator[Sequence[Rejected]]:
    """First each key's first change, then each one's second, and so on; so many at a time at most."""
    turns: Counter[str] = Counter()
    rounds: list[list[Rejected]] = []
    for one in waiting:
        turn = turns[one.key]
        if turn == len(rounds):
            rounds.append([])
        rounds[turn].append(one)
        turns[one.key] += 1
    for found in rounds:
        for begin in range(0, len(found), most):
            yield found[begin : begin + most]
