"""The gate of a server, which all protocols let their clients in by."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbt_incremental_dd.serve.hub import Hub
from dbt_incremental_dd.serve.inboxes import Inboxes
from dbt_incremental_dd.serve.query_pool import QueryPool
from dbt_incremental_dd.serve.reader import Reader
from dbt_incremental_dd.serve.recorder import Recorder
from dbt_incremental_dd.serve.sender import Sender
from dbt_incremental_dd.serve.usage import Usage
from dbt_incremental_dd.serve.users.authenticator import Authenticator, Login
from dbt_incremental_dd.serve.users.sessions import Sessions


@dataclass(frozen=True)
class Gate:
    """By default it lets everybody read everything and send to all sources, and records nothing."""

    hub: Hub
    queries: QueryPool
    sessions: Sessions = field(default_factory=lambda: Sessions(Authenticator()))
    recorder: Recorder = field(default_factory=Recorder)
    inboxes: Inboxes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inboxes", Inboxes(self.hub.database.storage))

    @property
    def authenticator(self) -> Authenticator:
        """Finds out whose a token is."""
        return self.sessions.authenticator

    def reader(self, login: Login, usage: Usage) -> Reader:
        """What the login's user may read."""
        return Reader(self.hub, self.queries, login.user, usage)

    def sender(self, login: Login, usage: Usage) -> Sender:
        """What the login's user may send."""
        return Sender(self.inboxes, login.user, usage)
