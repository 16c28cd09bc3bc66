"""A process that takes tables in: ``python -m tests.feeds.mysql_worker STATE_ROOT PORT DATABASE TABLE...``."""

from __future__ import annotations

import sys

from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.trace.layout import Storage
from tests.feeds.mysql_fixtures import without_spark


def main() -> None:
    """One run."""
    root, port, database, *tables = sys.argv[1:]
    meta = {"connector": "mysql", "options": {"host": "127.0.0.1", "port": port, "user": "root"}}
    specs = [parse_source(f"{database}.{name}", f"`{database}`.`{name}`", meta, {}, "") for name in tables]
    run = Run(without_spark(), Storage(root), "worker", None, print)
    run.scope.expect(lambda: specs)
    for spec in specs:
        run.source(spec)


if __name__ == "__main__":
    main()
