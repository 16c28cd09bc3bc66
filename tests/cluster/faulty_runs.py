"""Runs of models over a bad line to their state, in a process of its own.

python -m tests.cluster.faulty_runs ROOT OPTIONS ENDPOINT RUNS: ENDPOINT is the store's; OPTIONS (JSON) lack it.
"""

from __future__ import annotations

import json
import random
import sys
from decimal import Decimal

from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.runtime.session import open_session
from dbt_incremental_dd.storage.uris import hadoop_settings
from dbt_incremental_dd.trace.layout import Storage
from tests.oracle import Table, World
from tests.servers.cluster import mapped_classes, on_class_path
from tests.servers.slow_proxy import SlowProxy, slowed

SHARE = 0.03
"""Of all requests that fail."""
MODELS = {
    "counted": "SELECT k, count(*) n, sum(v) total, min(v) least FROM {sales} GROUP BY k",
    "joined": "SELECT s.k, s.v, n.name FROM {sales} s LEFT JOIN {names} n ON s.k = n.k",
    "most": "SELECT * FROM (SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v DESC) r FROM {sales}) WHERE r = 1",
    "above": "SELECT name, max(v) most FROM {joined} GROUP BY name",
    "untouched": "SELECT count(*) n FROM {names}",
}


def main(root: str, options: dict[str, str], endpoint: str, runs: int) -> None:
    """A line of JSON at the end: how many runs failed, and of what requests. Fails where a model is not exact."""
    with slowed(endpoint) as proxy:
        found = {**options, "AWS_ENDPOINT_URL": proxy.endpoint}
        hadoop = {f"spark.hadoop.{name}": value for name, value in hadoop_settings(root, found).items()}
        spark = open_session(
            root, {**on_class_path(), **mapped_classes(), **hadoop, "spark.sql.shuffle.partitions": "2"}
        )
        sales = Table("k INT, v DECIMAL(9,2)", [(n % 7, Decimal(n)) for n in range(50)])
        names = Table("k INT, name STRING", [(n, f"name {n % 3}") for n in range(6)])
        world = World(spark, Storage(root, found), {"sales": sales, "names": names})
        for name, sql in MODELS.items():
            world.model(name, sql)
        world.step()
        world.check()
        failed = _runs(world, proxy, runs)
        print(json.dumps({"failed": failed, "faults": proxy.failed}), flush=True)


def _runs(world: World, proxy: SlowProxy, runs: int) -> int:
    chance, failed = random.Random(7), 0
    for number in range(1, runs + 1):
        rows = world.tables["sales"].rows
        world.delete("sales", [rows[chance.randrange(len(rows))]])
        world.insert(
            "sales", [(chance.choice([None, *range(7)]), Decimal(chance.randrange(10_000)) / 100) for _ in range(2)]
        )
        if number % 5 == 0:
            world.insert("names", [(chance.randrange(7), f"name {number}")])
        run = world._next_run()
        proxy.faults = SHARE
        try:
            for name in world.models:
                run.model(world._request(name))
            run.finish()
        except (DifferentialError, OSError):
            failed += 1
        proxy.faults = 0.0
        if number % 20 == 0 or number == runs:
            world.step()
            world.check()
    return failed


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
