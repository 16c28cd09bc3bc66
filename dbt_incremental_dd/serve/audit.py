"""The audit log: a line of JSON for each access, written by a thread of its own."""

from __future__ import annotations

import json
import logging
import queue
from collections.abc import Callable
from datetime import UTC, datetime
from logging.handlers import QueueListener, WatchedFileHandler
from pathlib import Path

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.serve.usage import Usage

_MAX_SQL = 10_000
"""Characters of a statement that are written."""
_MAX_WAITING = 100_000
"""Lines that may wait to be written; more are lost, which is reported."""


class AuditLog:
    """Appends to a file, which is opened anew after a rotation. Each line has

    - ``time``: ms since 1970; ``event``: ``end`` of an access, or ``begin`` of a subscription;
    - ``user``, ``peer`` (address and port), ``protocol``, ``action``, and if there are any ``collection``, ``sql``,
      ``as_of`` (ms), ``path`` (of a request that is refused);
    - ``status``: HTTP's or an SQLSTATE, ``rows`` and ``bytes`` that were sent, and ``ms`` that it took.

    Raises ConfigError if the file cannot be written."""

    def __init__(self, path: Path, report: Callable[[str], None]) -> None:
        try:
            handler = _Lines(path, report)
        except OSError as error:
            raise ConfigError(f"the audit log {path} cannot be written: {error}", "Give another --audit.") from error
        self._report = report
        self._waiting: queue.Queue[logging.LogRecord] = queue.Queue(_MAX_WAITING)
        self._handler = handler
        self._listener = QueueListener(self._waiting, handler)
        self._listener.start()
        self._is_full = False

    def began(self, usage: Usage) -> None:
        """Writes that a subscription has begun."""
        self._write({"event": "begin", **_told(usage)})

    def ended(self, usage: Usage) -> None:
        """Writes that an access has ended. Requests of files of pages that succeed are not written."""
        if usage.action:
            result = {"status": usage.status, "rows": usage.rows, "bytes": usage.bytes, "ms": int(usage.seconds * 1000)}
            self._write({"event": "end", **_told(usage), **result})

    def _write(self, line: dict[str, object]) -> None:
        told = {"time": int(datetime.now(UTC).timestamp() * 1000), **line}
        record = logging.makeLogRecord({"msg": json.dumps(told, ensure_ascii=False)})
        try:
            self._waiting.put_nowait(record)
            self._is_full = False
        except queue.Full:
            if not self._is_full:
                self._is_full = True
                self._report("WARNING: the audit log is written too slowly, and lacks accesses from here on.")

    def close(self) -> None:
        """Writes what waits, and closes the file."""
        self._listener.stop()
        self._handler.close()


class _Lines(WatchedFileHandler):
    """Reports the first error."""

    def __init__(self, path: Path, report: Callable[[str], None]) -> None:
        super().__init__(path, encoding="utf-8", errors="backslashreplace")
        self._report = report
        self._has_failed = False

    def emit(self, record: logging.LogRecord) -> None:
        """Writes a line, in the file that has the name now."""
        try:
            super().emit(record)
        except OSError:  # it cannot be opened anew
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (of logging)
        if not self._has_failed:
            self._has_failed = True
            self._report(f"WARNING: the audit log {self.baseFilename} cannot be written, and lacks accesses.")


def _told(usage: Usage) -> dict[str, object]:
    sql = None if usage.sql is None else usage.sql[:_MAX_SQL]
    of_what = {"collection": usage.collection, "path": usage.path, "sql": sql, "as_of": usage.as_of}
    who = {"user": usage.user, "peer": usage.peer, "protocol": usage.protocol, "action": usage.action}
    return {**who, **{name: value for name, value in of_what.items() if value is not None}}
