"""What a connector is: a module, or a folder's ``connector``, with these."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol, TypeVar

from dbt_incremental_dd.sources.poll import PollRequest
from dbt_incremental_dd.sources.poll_result import PollResult
from dbt_incremental_dd.sources.spec import SourceSpec
from dbt_incremental_dd.trace.layout import Storage

S = TypeVar("S", bound=SourceSpec)


class Connector(Protocol[S]):
    """What it needs beyond this package's requirements it imports where it is used."""

    SPEC: type[S]
    """Its settings, and its name among them."""

    def poll(self, request: PollRequest[S]) -> PollResult | None:
        """What is new of the source; None if nothing is. Raises SourceError, naming the source."""

    def change_token(self, storage: Storage, spec: S) -> Hashable | None:
        """What the source looks like, as ``change_token.change_token`` says; cheap, and without Spark. None if only a
        poll can tell."""

    def poll_interval(self, spec: S) -> float:
        """Seconds between two looks at the token; 0 if a look costs nothing."""
