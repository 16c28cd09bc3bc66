"""A process that takes tables in: ``python -m tests.feeds.postgres_worker STATE_ROOT URL TABLE...``."""

from __future__ import annotations

import sys

from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.session import open_session
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.trace.layout import Storage
from tests.conftest import SETTINGS
from tests.short_lived import SHORT_LIVED


def main() -> None:
    """One run."""
    root, url, *tables = sys.argv[1:]
    meta = {"connector": "postgres", "options": {"url": url}}
    specs = [parse_source(f"public.{name}", f"`public`.`{name}`", meta, {}, "") for name in tables]
    settings = {**SETTINGS, "spark.master": "local[2]", "spark.driver.memory": "1g"}
    spark = open_session(root, {**settings, "spark.driver.extraJavaOptions": SHORT_LIVED})
    run = Run(LazySession.of(spark), Storage(root), "worker", None, print)
    run.scope.expect(lambda: specs)
    for spec in specs:
        run.source(spec)


if __name__ == "__main__":
    main()
