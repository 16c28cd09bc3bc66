"""TPC-H's 22 queries as models: rounds of changes to every table, each model compared with Spark's batch answer.

``python -m benchmarks.tpch.run --scale 0.1 --rounds 5``
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks import rounds
from benchmarks.tpch.feed import KEYS, Feed
from dbt_incremental_dd.sources.config import SourceSpec, parse_source

QUERIES = Path(__file__).with_name("queries")


def main() -> int:
    """0 when every model was exact after every round."""
    options = rounds.arguments(__doc__, scale=0.1, share=0.001, folder="tpch").parse_args()
    folder = options.folder.resolve()
    feed = Feed(folder, options.scale, options.share)
    models = rounds.requests("tpch", QUERIES, sources(folder), options.only)
    return 1 if rounds.run(rounds.session(folder, "tpch"), folder, feed, models, options.rounds) else 0


def sources(folder: Path) -> dict[str, SourceSpec]:
    """The eight tables, each a folder of records that put or remove the row of a key."""
    common = {"envelope": "upsert", "order_by": ["seq"], "deleted_when": "op = 'd'", "format": "parquet"}
    return {
        f"tpch.{table}": parse_source(
            f"tpch.{table}",
            f"tpch.{table}",
            {**common, "key": list(key), "path": str(folder / table)},
            {},
            str(folder),
        )
        for table, key in KEYS.items()
    }


if __name__ == "__main__":
    sys.exit(main())
