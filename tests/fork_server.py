"""Runs commands in forks of a process that has already imported what they need. A command that needs no Spark session
spends most of its time on imports."""

from __future__ import annotations

import atexit
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

COMMANDS = ("dbt.cli.main", "dbt.adapters.differential", "dbt_incremental_dd.cli", "tests.dbt.commands")
"""Modules of ``dbt`` and ``dbt-dd``, and of several commands of dbt."""


class ForkServer:
    """Runs one command after another. Each has an environment and a life of its own, to its handlers at exit."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        command = [sys.executable, "-m", __name__, *modules]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def call(self, command: list[str], environment: Mapping[str, str], folder: Path) -> tuple[int, str]:
        """A command's exit code, or its signal below 0, and its output. ``command``: ``dbt``, ``dbt-dd`` or a module of
        the server's, and arguments."""
        with tempfile.NamedTemporaryFile("r") as told:
            request = {"command": command, "environment": dict(environment), "told": told.name, "folder": str(folder)}
            assert self._process.stdin is not None and self._process.stdout is not None
            print(json.dumps(request), file=self._process.stdin, flush=True)
            code = self._process.stdout.readline().strip()
            assert code, f"{command}: the server has ended"
            return int(code), told.read()

    def run(self, command: list[str], environment: Mapping[str, str], folder: Path) -> str:
        """The output of a command that must succeed."""
        code, text = self.call(command, environment, folder)
        assert code == 0, text or f"{command}: exit code {code}"
        return text

    def end(self) -> None:
        """Ends the process: its input ends."""
        self._process.communicate()


@cache
def fork_server(*modules: str) -> ForkServer:
    """The one server of this process for ``COMMANDS``, or for these modules."""
    server = ForkServer(modules or COMMANDS)
    atexit.register(server.end)
    return server


def _main() -> None:
    for name in sys.argv[1:]:
        importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if not pid:
            _become(request)
            sys.exit(_entry(request["command"][0])())
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(request: dict[str, Any]) -> None:
    """Makes this process the command's."""
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    for descriptor, path, flags in ((0, os.devnull, os.O_RDONLY), (1, request["told"], os.O_WRONLY)):
        file = os.open(path, flags)
        os.dup2(file, descriptor)
        os.close(file)
    os.dup2(1, 2)
    sys.argv = request["command"]


def _entry(command: str) -> Any:
    """What is called as a program's main function."""
    if Path(command).name == "dbt":
        from dbt.cli.main import cli

        return cli
    if command == "dbt-dd":
        from dbt_incremental_dd.cli import main

        return main
    return sys.modules[command].main


if __name__ == "__main__":
    _main()
