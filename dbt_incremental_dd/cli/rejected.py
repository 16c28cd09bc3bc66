"""``dbt-dd publish --list-rejected`` and ``--resend``, and how many rejected changes ``dbt-dd status`` shows."""

from __future__ import annotations

import argparse

from dbt_incremental_dd.api import Database
from dbt_incremental_dd.cli.graph import rejecting
from dbt_incremental_dd.cli.opened import collection
from dbt_incremental_dd.cli.printed import print_table
from dbt_incremental_dd.cli.profile import project_folder
from dbt_incremental_dd.cli.publishing import wanted_by
from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.core.time import Time, format_time
from dbt_incremental_dd.sinks.registry import rejected, resend

_COLUMNS = ("reason", "changes", "first", "last")


def list_rejected(options: argparse.Namespace) -> int:
    """Prints how many changes were rejected, by reason, with the times of the first and the last one."""
    name, kind, wanted = wanted_by(options)
    reasons: dict[str, list[Time]] = {}
    for one in rejected(collection(options, name), kind, wanted):
        reasons.setdefault(one.reason, []).append(one.time)
    if not reasons:
        print(f"No rejected changes in {wanted.rejected}.")
        return 0
    rows = [(why, str(len(t)), format_time(min(t)), format_time(max(t))) for why, t in sorted(reasons.items())]
    print_table([dict(zip(_COLUMNS, row, strict=True)) for row in rows], _COLUMNS)
    return 0


def resend_rejected(options: argparse.Namespace) -> int:
    """Sends rejected changes again; 1 if some of them are rejected again."""
    name, kind, wanted = wanted_by(options)
    found = resend(collection(options, name), kind, wanted)
    stay = f", {found.rejected} rejected again: they stay in {wanted.rejected}" if found.rejected else ""
    print(f"{found.delivered} delivered{stay}")
    return 1 if found.rejected else 0


def rejected_counts(options: argparse.Namespace, opened: Database, names: list[str]) -> dict[str, int | None]:
    """How many changes of these collections were rejected, where the project's exposures set such aside; None if a file
    cannot be read. Empty without a project that dbt has parsed."""
    folder, found = project_folder(options), dict[str, int | None]()
    for one in [] if folder is None else rejecting(folder):
        if one.collection in names:
            try:
                count = len(rejected(opened[one.collection], one.kind, one.wanted))
            except DifferentialError:
                found[one.collection] = None
                continue
            former = found.get(one.collection, 0)
            found[one.collection] = None if former is None else former + count
    return found
