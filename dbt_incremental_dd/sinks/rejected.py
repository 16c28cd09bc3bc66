"""Changes that a webhook's receiver has rejected: a file of JSON lines, which they leave once they are delivered.

    {"id": ..., "webhook": <a hash of its URL>, "reason": "status 422", "attempts": 1, "event": {"type": ...}}

Publications may share a file, and so may processes: who writes it has its lock. Lines are appended and synced before
the publisher notes that their time is done, and are taken out by replacing the file. So a change that was rejected is
in the file, or will be sent again by its publisher, wherever a process is killed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from dbt_incremental_dd.core import file_lock
from dbt_incremental_dd.core.errors import SinkError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.sinks.webhook_delivery import Event, Sink
from dbt_incremental_dd.storage import durable

_LONGEST_WAIT = 600.0
"""Seconds for which a writer waits for another one, who replaces a file."""
Line = dict[str, Any]


@dataclass(frozen=True)
class Rejected:
    """A change of a key at a time (ms), rejected so many times in ``attempts``, the last time for ``reason``."""

    event: Event
    key: str
    time: Time
    reason: str
    attempts: int


class RejectedFile:
    """The file, as a collection's publication to a sink sees it. Raises SinkError, naming file and line, for what is
    no such line, and if the file cannot be read or written."""

    def __init__(self, path: Path, collection: str, sink: Sink) -> None:
        self.path = path.resolve()
        self._collection = collection
        self._webhook = sink.id

    def append(self, rejected: Iterable[tuple[Event, str]]) -> None:
        """Adds changes with the reason for which each was rejected, durably."""
        lines = [self._line(event.id, reason, 1, json.loads(event.body)) for event, reason in rejected]
        with self._guarded(), self._locked("writing", _LONGEST_WAIT):
            with self.path.open("ab+") as file:
                _mend(file)
                file.write(b"".join(map(_encoded, lines)))
                file.flush()
                reached("rejected: written")
                _sync(file)
            durable.sync_folder(str(self.path.parent))
        reached("rejected: appended")

    def read(self) -> list[Rejected]:
        """This publication's changes, by time; one that is there several times, by several kills, as the last one."""
        with self._guarded():
            found = {line["id"]: _rejected(line) for line in self._lines() if self._is_own(line)}
        return sorted(found.values(), key=lambda one: one.time)

    def settle(self, delivered: Collection[str], failed: Mapping[str, str]) -> None:
        """Takes delivered changes out, by their ids, and notes why others have failed once more; atomically."""
        with self._guarded(), self._locked("writing", _LONGEST_WAIT):
            kept = []
            for line in self._lines():
                if self._is_own(line) and line["id"] in delivered:
                    continue
                if self._is_own(line) and line["id"] in failed:
                    line |= {"reason": failed[line["id"]], "attempts": int(line["attempts"]) + 1}
                kept.append(line)
            self._replace(b"".join(map(_encoded, kept)))

    @contextmanager
    def resending(self) -> Iterator[None]:
        """While it lasts, no other process sends changes of the file again. Raises SinkError if one does."""
        with self._locked("resending", 0.0):
            yield

    def _line(self, id: str, reason: str, attempts: int, event: Any) -> Line:
        return {"id": id, "webhook": self._webhook, "reason": reason, "attempts": attempts, "event": event}

    def _is_own(self, line: Line) -> bool:
        return bool(line["webhook"] == self._webhook and line["event"]["collection"] == self._collection)

    def _lines(self) -> Iterator[Line]:
        """All lines, but for a part of one at the end: a killed publisher's, which sends that change again."""
        try:
            *whole, last = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return
        for number, text in enumerate(whole + [last] * _is_line(last), 1):
            if text.strip():
                if not _is_line(text):
                    raise SinkError(
                        f"{self.path}, line {number}: it is no rejected change", "Correct the line, or remove it."
                    )
                yield json.loads(text)

    def _replace(self, data: bytes) -> None:
        if not self.path.exists():
            return
        made = self.path.with_name(f".{self.path.name}.part")
        with made.open("wb") as file:
            file.write(data)
            _sync(file)
        shutil.copymode(self.path, made)
        reached("resend: written")
        os.replace(made, self.path)
        durable.sync_folder(str(self.path.parent))
        reached("resend: replaced")

    @contextmanager
    def _locked(self, what: str, longest_wait: float) -> Iterator[None]:
        """Has a lock beside the file. Raises SinkError, naming the process, if another one has it for so long."""
        if not file_lock.IS_POSSIBLE:
            yield
            return
        path = str(self.path.with_name(f".{self.path.name}.{what}"))
        with self._guarded():
            try:
                descriptor = file_lock.acquire(path, longest_wait, lambda holder: None, lambda: True)
            except TimeoutError as error:
                raise SinkError(
                    f"process {error} is {what} the changes in {self.path}", "Start it again when that one is done."
                ) from error
        try:
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SinkError(
                f"rejected changes cannot be kept in {self.path}: {error}",
                "Check that the folder is there, and that this user may write into it.",
            ) from error


def _rejected(line: Line) -> Rejected:
    event = line["event"]
    key = json.dumps(event["key"], sort_keys=True)
    return Rejected(Event(line["id"], body_of(event)), key, int(event["time"]), line["reason"], int(line["attempts"]))


def body_of(event: Mapping[str, Any]) -> bytes:
    """An event as it is sent."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


def _is_line(text: bytes) -> bool:
    try:
        line = json.loads(text)
        event = line["event"]
        return (
            all(isinstance(text, str) for text in (line["id"], line["webhook"], line["reason"], event["collection"]))
            and all(type(number) is int for number in (line["attempts"], event["time"]))
            and isinstance(event["key"], dict)
        )
    except (ValueError, KeyError, TypeError):
        return False


def _encoded(line: Line) -> bytes:
    return json.dumps(line, ensure_ascii=False).encode() + b"\n"


def _mend(file: IO[bytes]) -> None:
    """Ends the last line: one of which a killed publisher has written a part goes."""
    size = file.seek(0, os.SEEK_END)
    if not size:
        return
    file.seek(size - 1)
    if file.read(1) == b"\n":
        return
    file.seek(0)
    data = file.read()
    last = data.rpartition(b"\n")[2]
    if _is_line(last):
        file.write(b"\n")
    else:
        file.truncate(size - len(last))


def _sync(file: IO[bytes]) -> None:
    if durable.enabled:
        file.flush()
        os.fsync(file.fileno())
