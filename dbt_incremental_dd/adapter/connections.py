"""Connections: all of dbt's threads share one Spark session."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Hashable
from contextlib import suppress
from functools import partial
from typing import Any

from dbt.adapters.differential.bindings import BoundSession
from dbt.adapters.differential.errors import dbt_errors
from dbt.adapters.differential.seeds import any_loaded
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark import SparkConnectionManager
from dbt.adapters.spark.session import SessionConnectionWrapper
from dbt_common.exceptions import DbtRuntimeError

from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.driver_answer import driver_answer
from dbt_incremental_dd.runtime.session import is_usable
from dbt_incremental_dd.runtime.session_memory import StoredMemory
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.trace.layout import Storage

logger = AdapterLogger("Differential")

_RUNS = ("run", "build")
_CERTAIN = ("seed", "snapshot")
"""Commands whose statements are Spark's, but for seeds that need none; those of others may be answered without it."""
_PRINTING = ("show", "run-operation")
"""Commands that may print the names of a query's columns. Macros of others take an unnamed column by its number."""
_STATEMENTS = (*_CERTAIN, "show", "test")
_SELECTION = ("WHICH", "SELECT", "EXCLUDE", "SELECTOR", "RESOURCE_TYPES", "EXCLUDE_RESOURCE_TYPES")
"""dbt's flags that say which nodes a command is for."""
_LOCK = threading.Lock()
_SESSIONS: dict[tuple[Hashable, ...], LazySession] = {}


class DifferentialConnectionManager(SparkConnectionManager):
    """dbt-spark's. The session is opened by the first statement, with the engine's settings."""

    TYPE = "differential"

    def __init__(self, config: Any, mp_context: Any) -> None:
        super().__init__(config, mp_context)
        _open_ahead(config.credentials)

    @classmethod
    def open(cls, connection: Any) -> Any:
        from dbt.flags import get_flags

        opened = super().open(connection)
        if isinstance(opened.handle, SessionConnectionWrapper):
            session = _session(connection.credentials)
            asked = partial(session.memory.note_statement, _command())
            storage = storage_of(connection.credentials, _invocation_dir())
            command = getattr(get_flags(), "WHICH", None)
            needs_names = command in _PRINTING
            answer = partial(driver_answer, session, storage, source_of=_source_of, needs_names=needs_names)
            is_trial = command == "debug"  # of whether there is a Spark that answers
            opened.handle = BoundSession(opened.handle.handle, session, asked, _no_answer if is_trial else answer)
        return opened

    def cleanup_all(self) -> None:
        super().cleanup_all()
        with _LOCK:
            sessions = list(_SESSIONS.values())
        for session in sessions:
            with suppress(DifferentialError, OSError):  # a note that cannot be written costs time alone
                session.memory.keep_statements(_command())
            session.memory.leave()

    def session(self) -> LazySession:
        """The session. Opening it raises SessionError."""
        return _session(self.profile.credentials)


def _session(credentials: Any) -> LazySession:
    """The process's session. Raises DbtRuntimeError where nothing could be stored."""
    folder, options = _invocation_dir(), sorted(credentials.storage_options.items())
    key = (credentials.root(folder), *sorted(credentials.settings.items()), *options)
    with _LOCK, dbt_errors():
        if key not in _SESSIONS or not is_usable(_SESSIONS[key]):
            _SESSIONS[key] = credentials.session(folder, logger.debug)
        return _SESSIONS[key]


def _no_answer(sql: str) -> None:
    """Spark answers everything."""


def _source_of(schema: str, identifier: str) -> SourceSpec | None:
    """As the adapter says, which knows dbt's graph."""
    from dbt.adapters.factory import get_adapter_by_type

    adapter: Any = get_adapter_by_type(DifferentialConnectionManager.TYPE)
    found: SourceSpec | None = adapter.declared_source(schema, identifier)
    return found


def _open_ahead(credentials: Any) -> None:
    """Opens the session while dbt reads the project, where the command is certain to need it: dbt's own statements do,
    and a first run. A command that had such statements the last time has them again."""
    from dbt.flags import get_flags

    command = getattr(get_flags(), "WHICH", None)
    if command not in (*_RUNS, *_STATEMENTS):
        return
    with suppress(DbtRuntimeError, DifferentialError, OSError):  # raised again when it is asked for
        session = _session(credentials)
        is_ours = isinstance(session.memory, StoredMemory)
        is_first = not session.memory.settings
        if is_ours and not session.is_open and (is_first or _is_certain(command, credentials, session)):
            session.open_ahead()


def _is_certain(command: str, credentials: Any, session: LazySession) -> bool:
    """Whether the command has statements for Spark; seeds that were loaded once may have none."""
    if session.memory.has_statements(_command()):
        return True
    if command == "seed":
        return session.memory.due is None and not any_loaded(storage_of(credentials, _invocation_dir()))
    return command in _CERTAIN


def _command() -> str:
    """The same for commands for the same nodes."""
    from dbt.flags import get_flags

    flags = get_flags()
    return json.dumps([getattr(flags, name, None) for name in _SELECTION], default=str)


def _invocation_dir() -> str:
    from dbt.flags import get_flags

    return os.path.abspath(str(getattr(get_flags(), "PROJECT_DIR", None) or os.getcwd()))


def project_dir(config: Any) -> str:
    """The folder of the project that is run."""
    return os.path.abspath(str(getattr(config, "project_root", None) or _invocation_dir()))


def storage_of(credentials: Any, folder: str) -> Storage:
    """The state root that the profile names."""
    storage: Storage = credentials.storage(folder)
    return storage


__all__ = ["DifferentialConnectionManager", "project_dir", "storage_of"]
