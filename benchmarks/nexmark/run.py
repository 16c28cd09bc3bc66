"""Nexmark's queries as models: rounds of new, changed and withdrawn events, compared with Spark's batch answer.

``python -m benchmarks.nexmark.run --scale 0.1 --rounds 5``
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks import rounds
from benchmarks.nexmark.feed import Feed
from dbt_incremental_dd.sources.config import SourceSpec, parse_source

QUERIES = Path(__file__).with_name("queries")
_KEYED = {"envelope": "upsert", "key": ["id"], "order_by": ["seq"], "deleted_when": "op = 'd'", "format": "parquet"}
_SETTINGS = {
    "person": _KEYED,
    "auction": _KEYED,
    "bid": {"envelope": "append", "format": "parquet"},
    "side": {"envelope": "snapshot", "format": "csv", "options": {"header": True}},
}


def main() -> int:
    """0 when every model was exact after every round."""
    options = rounds.arguments(__doc__, scale=0.1, share=0.005, folder="nexmark").parse_args()
    folder = options.folder.resolve()
    feed = Feed(folder, options.scale, options.share)
    models = rounds.requests("nexmark", QUERIES, sources(folder), options.only)
    return 1 if rounds.run(rounds.session(folder, "nexmark"), folder, feed, models, options.rounds) else 0


def sources(folder: Path) -> dict[str, SourceSpec]:
    """People and auctions by key, bids as they come, and the side table as it is."""
    columns = {"side": {"key": "bigint", "value": "string"}}
    return {
        f"nexmark.{table}": parse_source(
            f"nexmark.{table}",
            f"nexmark.{table}",
            {**settings, "path": str(folder / table)},
            columns.get(table, {}),
            str(folder),
        )
        for table, settings in _SETTINGS.items()
    }


if __name__ == "__main__":
    sys.exit(main())
