"""A process that brings an open table up to its collection, and may be ended in the middle: ROOT FORMAT [STOP_AT]."""

from __future__ import annotations

import sys

from dbt_incremental_dd.core import failpoints
from tests.open_table.written import Written


def main() -> int:
    """0 unless it is ended."""
    written = Written(*sys.argv[1:3])
    failpoints.watch(*sys.argv[3:])
    written.show()
    return 0
