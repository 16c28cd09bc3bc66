"""``dbt-dd``, the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dbt_incremental_dd.cli.arguments import parser
from dbt_incremental_dd.cli.verbs import VERBS
from dbt_incremental_dd.core.errors import DifferentialError


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; 0 when it did what was asked, 1 when not, 2 for a wrong call."""
    options = parser().parse_args(arguments)
    try:
        return VERBS[options.verb](options)
    except DifferentialError as error:
        print(f"dbt-dd: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0
