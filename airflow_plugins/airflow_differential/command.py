"""A command of dbt's or of this project's, run beside the task: its lines go to the task's log as they come."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_LAST_LINES = 30


class CommandFailed(RuntimeError):
    """A command ended with another code than 0; with its last lines."""


class Command:
    """One command; ``end`` ends it, with what it has started."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], folder: str | None = None) -> None:
        self._arguments = list(arguments)
        self._environment = {**os.environ, **environment}
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    def run(self, report: Callable[[str], None]) -> None:
        """Waits for its end. Raises CommandFailed if it was not successful."""
        self._process = subprocess.Popen(
            self._arguments,
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        assert self._process.stdout is not None
        last: list[str] = []
        for line in self._process.stdout:
            report(line.rstrip("\n"))
            last = [*last[1 - _LAST_LINES :], line]
        code = self._process.wait()
        if code != 0:
            raise CommandFailed(f"{self._arguments[0]} ended with {code}:\n{''.join(last)}")

    def end(self) -> None:
        """Ends it at once; what it had not committed is never visible."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)


def executable(name: str) -> str:
    """A command that is installed beside this Python, or else found on the path."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else name
