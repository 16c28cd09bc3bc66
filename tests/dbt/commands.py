"""Several commands of dbt in one process, one after another: they share its session, and so its JVM."""

from __future__ import annotations

import json
import sys


def main() -> int:
    """``tests.dbt.commands FOLDER COMMANDS``: a project, and arrays of commands' arguments as JSON. Ends with the first
    that fails."""
    from dbt.cli.main import dbtRunner

    _, folder, commands = sys.argv
    where = ["--project-dir", folder, "--profiles-dir", folder]
    return 0 if all(dbtRunner().invoke([*command, *where]).success for command in json.loads(commands)) else 1
