"""Runs ``dbt`` and ``dbt-dd`` in forks of a process that has already imported them. A command that needs no Spark
session spends half of its time on imports."""

from __future__ import annotations

import atexit
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

_IMPORTED = ("dbt.cli.main", "dbt.adapters.differential", "dbt_incremental_dd.cli")


class ForkServer:
    """Runs one command after another. Each has an environment and a life of its own, to its handlers at exit."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", __name__]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, command: list[str], environment: Mapping[str, str], folder: Path) -> str:
        """The output of a command that must succeed. ``command``: ``dbt`` or ``dbt-dd``, and arguments."""
        with tempfile.NamedTemporaryFile("r") as told:
            request = {"command": command, "environment": dict(environment), "told": told.name, "folder": str(folder)}
            assert self._process.stdin is not None and self._process.stdout is not None
            print(json.dumps(request), file=self._process.stdin, flush=True)
            code, text = self._process.stdout.readline().strip(), told.read()
        assert code == "0", text or f"{command}: exit code {code or 'of a server that has ended'}"
        return text

    def end(self) -> None:
        """Ends the process: its input ends."""
        self._process.communicate()


@cache
def fork_server() -> ForkServer:
    """The one server of this process."""
    server = ForkServer()
    atexit.register(server.end)
    return server


def _main() -> None:
    for name in _IMPORTED:
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


def _entry(command: str) -> Callable[[], Any]:
    if Path(command).name == "dbt":
        from dbt.cli.main import cli

        return cli
    from dbt_incremental_dd.cli import main

    return main


if __name__ == "__main__":
    _main()
