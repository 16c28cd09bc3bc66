"""``dbt-dd status``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict

from dbt_incremental_dd.cli.freshness import FRESHNESS_COLUMNS, freshness_cells, freshness_row
from dbt_incremental_dd.cli.opened import database
from dbt_incremental_dd.cli.printed import print_no_collections, print_table
from dbt_incremental_dd.cli.rejected import rejected_counts
from dbt_incremental_dd.core.time import format_time
from dbt_incremental_dd.trace.status import Status


def status(options: argparse.Namespace) -> int:
    """Prints what there is of each collection."""
    opened = database(options)
    found = opened.status()
    fresh = opened.freshness() if any(one.target_lag is not None for one in found) else {}
    rejected = rejected_counts(options, opened, [one.name for one in found])
    rows = [{**_status_row(one, rejected), **freshness_row(fresh.get(one.name))} for one in found]
    if options.json:
        for row in rows:
            print(json.dumps(row))
        return 0
    if not rows:
        return print_no_collections(options)
    shown = ["collection", "kind", "since", "at", "rows", "updates", "files", "bytes", "held back by"]
    shown += ["adopted"] if any(one.adopted for one in found) else []
    shown += ["rejected"] if rejected else []
    cells = [{key: _cell(row[key.replace(" ", "_")]) for key in shown} for row in rows]
    if fresh:
        shown += FRESHNESS_COLUMNS
        cells = [{**row, **freshness_cells(fresh.get(one.name))} for row, one in zip(cells, found, strict=True)]
    print_table(cells, shown)
    return 0


def _status_row(found: Status, rejected: Mapping[str, int | None]) -> dict[str, object]:
    """A status as it is printed, with frontiers as timestamps. ``rejected``: changes, by collection; None if unknown,
    and 0 where nothing sets any aside."""
    row = asdict(found)
    since = format_time(found.since) if found.since else "the beginning"
    times = {"since": since, "at": format_time(found.at)}
    return {"collection": row.pop("name"), **row, **times, "rejected": rejected.get(found.name, 0)}


def _cell(value: object) -> str:
    return "?" if value is None else str(value)
