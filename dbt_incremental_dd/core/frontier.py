"""A collection's frontiers: it can be read exactly as of the times ``since <= t < upper``."""

from __future__ import annotations

from dataclasses import dataclass

from dbt_incremental_dd.core.errors import FrontierError
from dbt_incremental_dd.core.time import Time, format_time


@dataclass(frozen=True)
class Frontiers:
    """Times below ``upper`` are final; times below ``since`` have been compacted into one. Both in ms."""

    since: Time
    upper: Time

    @property
    def last(self) -> Time:
        """The latest final time."""
        return self.upper - 1

    def readable(self, t: Time) -> bool:
        """Whether the collection can be read exactly as of ``t``."""
        return self.since <= t < self.upper

    def require(self, t: Time, collection: str) -> None:
        """Raises FrontierError, naming the range, unless ``t`` is readable."""
        if self.readable(t):
            return
        if t < self.since:
            raise FrontierError(
                f"{collection} cannot be read as of {format_time(t)}: its history begins at "
                f"since = {format_time(self.since)}",
                "Read at a time from then on. It was first built then, or what was before has been compacted: "
                "`retain_history` sets how much is kept.",
            )
        raise FrontierError(
            f"{collection} cannot be read as of {format_time(t)}: it is final only up to {format_time(self.last)}",
            "Run `dbt run` to bring it further, or read at an earlier time.",
        )

    def require_advance(self, upper: Time, collection: str) -> None:
        """Raises FrontierError if ``upper`` would go back."""
        if upper < self.upper:
            raise FrontierError(
                f"the frontier of {collection} would go back from {format_time(self.upper)} to {format_time(upper)}",
                "Times below a frontier are final; choose a later time.",
            )
