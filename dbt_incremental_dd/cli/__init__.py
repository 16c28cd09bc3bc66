"""The command line, ``dbt-dd``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.core.foreign import is_foreign, reason

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command. Returns its exit status: 0 for success, 1 for failure, 2 for invalid arguments, 130 if
    interrupted.

    Commands import what they need inside this function, so that they can be interrupted at any moment.
    """
    try:
        from dbt_incremental_dd.cli.arguments import parser

        options = parser().parse_args(arguments)

        from dbt_incremental_dd.cli.verbs import VERBS

        return VERBS[options.verb](options)
    except DifferentialError as error:
        return _failed(str(error))
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:
        if not is_foreign(error):
            raise
        return _failed(reason(error))


def _failed(why: str) -> int:
    print(f"dbt-dd: {why}", file=sys.stderr)
    return 1
