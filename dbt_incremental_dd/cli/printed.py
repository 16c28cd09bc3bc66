"""How verbs of ``dbt-dd`` print."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from dbt_incremental_dd.cli.profile import locate


def print_line(line: str) -> None:
    """Prints a line and flushes it."""
    print(line, flush=True)


def print_table(rows: Sequence[dict[str, str]], columns: Sequence[str]) -> None:
    """Rows under their columns' names."""
    widths = {c: max([len(c), *(len(row[c]) for row in rows)]) for c in columns}
    for row in [{c: c for c in columns}, *rows]:
        print("  ".join(row[c].ljust(widths[c]) for c in columns).rstrip())


def print_no_collections(options: argparse.Namespace) -> int:
    """Says that there is nothing yet, which is no failure."""
    print(f"No collections under {locate(options).state_root}. Run `dbt run` first.")
    return 0
