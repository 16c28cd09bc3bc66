"""Writes a project's data as it would come from outside: the first state, and then a file a day, or a round.

python example_project/feed.py flights --until 2013-10-31
python example_project/feed.py payments
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import date
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

FIRST_DAYS = 300
"""Of flights, in the first state: until 2013-10-27."""


def main() -> None:
    """Files that are there already are left as they are, or written again with the same contents."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", choices=("flights", "payments"))
    parser.add_argument("--until", type=date.fromisoformat, help="the last day (default: one more)")
    share = float(os.environ.get("FLIGHTS_SAMPLE", 1))
    parser.add_argument(
        "--sample", type=float, default=share, help="the share of all flights (default: FLIGHTS_SAMPLE, or 1)"
    )
    options = parser.parse_args()
    if options.project == "flights":
        _flights(options.until, options.sample)
    else:
        _payments()


def _flights(until: date | None, sample: float) -> None:
    from example_project.flights.feed import FIRST_DAY, Feed

    folder = HERE / "flights" / "data"
    feed = Feed(folder, FIRST_DAYS, sample)
    if not (folder / "flights" / "start.parquet").exists():
        print(f"first state: {feed.start()}")
    there = len(list((folder / "flights").glob("????-??-??.parquet")))
    wanted = there + 1 if until is None else (until - FIRST_DAY).days + 1 - FIRST_DAYS
    for round in range(there + 1, wanted + 1):
        print(f"day {round}: {feed.advance(round)}")


def _payments() -> None:
    from example_project.payments.feed import Feed

    folder = HERE / "payments" / "data"
    there = len(list((folder / "payments").glob("*.json")))
    feed = Feed(folder)
    written = feed.start()
    for round in range(1, there + 1):
        written = feed.advance(round)
    print(written)


if __name__ == "__main__":
    main()
