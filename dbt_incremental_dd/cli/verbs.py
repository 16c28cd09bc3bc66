"""The verbs of ``dbt-dd``. Those that need Spark or dbt import them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping

from dbt_incremental_dd.cli.first_project import write_first_project
from dbt_incremental_dd.cli.following import publish, serve, watch
from dbt_incremental_dd.cli.opened import database
from dbt_incremental_dd.cli.reading import explain, query, subscribe
from dbt_incremental_dd.cli.status import status
from dbt_incremental_dd.cli.upkeep import compact, end_session, vacuum, verify
from dbt_incremental_dd.core.errors import ConfigError, FrontierError
from dbt_incremental_dd.core.time import format_time, parse_time


def _init(options: argparse.Namespace) -> int:
    print(write_first_project(options.folder))
    return 0


def _token(_: argparse.Namespace) -> int:
    from dbt_incremental_dd.serve.users.tokens import digest, new_token

    token = new_token()
    print(f"token   {token}\ndigest  {digest(token)}")
    print("The token is for its user alone. The digest stands in the file of users.", file=sys.stderr)
    return 0


def _advance(options: argparse.Namespace) -> int:
    opened, to = database(options), parse_time(options.to)
    name = opened.full_name(options.source)
    if "." not in name:
        raise ConfigError(f"{name} is no source that has been taken in", "Give its full name: schema.identifier.")
    found = opened.advance(name, to, first=options.first)
    if found > to:
        raise FrontierError(
            f"{name} is complete up to {format_time(found)} already, which is final", "Give a later time, or none."
        )
    print(f"{name} is complete up to {format_time(found)}")
    return 0


VERBS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "init": _init,
    "status": status,
    "explain": explain,
    "verify": verify,
    "query": query,
    "subscribe": subscribe,
    "publish": publish,
    "serve": serve,
    "token": _token,
    "watch": watch,
    "advance": _advance,
    "compact": compact,
    "vacuum": vacuum,
    "end-session": end_session,
}
"""The function of each verb; it returns the exit status."""
