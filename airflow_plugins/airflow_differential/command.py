"""Runs dbt or dbt-dd as a process. Its output goes to the task's log line by line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from airflow_differential.tracing import trace_context

_LAST_LINES = 30


class CommandFailed(RuntimeError):
    """A command failed; the message has its exit code and its last lines."""


class Command:
    """One command. ``end`` terminates it and its children."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], folder: str | None = None) -> None:
        self._arguments = list(arguments)
        self._environment = {**os.environ, **trace_context(), **environment}
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    def run(self, report: Callable[[str], None]) -> None:
        """Runs the command to its end; ``report`` is called with each line. Raises CommandFailed unless it exits with
        0."""
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
        """Terminates the command. What it has not committed is never visible."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)


def executable(name: str) -> str:
    """The path of a command installed beside this Python, or else its name."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else name
