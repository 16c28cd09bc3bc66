"""Verbs that read collections: ``query``, ``subscribe`` and ``explain``."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys

from dbt_incremental_dd.cli.opened import collection, session
from dbt_incremental_dd.cli.printed import print_table
from dbt_incremental_dd.core.time import parse_time
from dbt_incremental_dd.subscribe.json_values import python_rows


def query(options: argparse.Namespace) -> int:
    """Prints a collection's rows, as of a time if one is given."""
    found = collection(options, options.model)
    t = None if options.as_of is None else parse_time(options.as_of)
    table = found.as_of(t).slice(0, options.limit)
    rows = [{name: value for name, value in row.items() if name != "dd_diff"} for row in python_rows(table)]
    counts = table["dd_diff"].to_pylist()
    expanded = [row for row, count in zip(rows, counts, strict=True) for _ in range(count)][: options.limit]
    names = found.schema.names
    if options.format == "json":
        for row in expanded:
            print(json.dumps(row, default=str))
    elif options.format == "csv":
        import csv

        writer = csv.DictWriter(sys.stdout, names)
        writer.writeheader()
        writer.writerows(expanded)
    else:
        print_table([{n: "NULL" if row[n] is None else str(row[n]) for n in names} for row in expanded], names)
    return 0


def subscribe(options: argparse.Namespace) -> int:
    """Prints a collection's changes as they come, until it is interrupted."""
    from dbt_incremental_dd.subscribe.cursor import Cursor
    from dbt_incremental_dd.subscribe.lines import lines

    found = collection(options, options.model)
    subscription = found.subscribe(
        options.as_of,
        snapshot=not options.no_snapshot,
        up_to=options.up_to,
        select=options.select,
        key=options.key,
        name=options.name,
    )
    cursor = Cursor(subscription, progress=options.progress)
    with contextlib.suppress(KeyboardInterrupt), subscription:
        for line in lines(cursor, subscription.schema, options.format, progress=options.progress):
            print(line, flush=True)
    return 0


def explain(options: argparse.Namespace) -> int:
    """Prints a model's plan and what is stored of it, or what its last run did."""
    from dbt_incremental_dd.runtime.explain import explain_model
    from dbt_incremental_dd.runtime.run_log.told import explain_last_run

    found = collection(options, options.model)
    if options.analyze:
        print(explain_last_run(found.storage, found.name))
        return 0
    with session(options) as opened:
        print(explain_model(opened, found.storage, found.name))
    return 0
