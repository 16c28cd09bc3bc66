"""What verbs of ``dbt-dd`` open: the database that the options name, its collections, a session."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dbt_incremental_dd.api import Collection, Database
from dbt_incremental_dd.cli.profile import locate

if TYPE_CHECKING:
    from dbt_incremental_dd.relation.lazy_session import LazySession


def database(options: argparse.Namespace) -> Database:
    """That of the state root."""
    found = locate(options)
    return Database(found.state_root, found.storage_options, found.thresholds)


def collection(options: argparse.Namespace, name: str) -> Collection:
    """A collection by its full name, or by its last part if that is unique."""
    return database(options).find(name)


@contextlib.contextmanager
def session(options: argparse.Namespace) -> Iterator[LazySession]:
    """Opened when it is first needed; it tells later ones how it leaves the catalog."""
    from dbt_incremental_dd.runtime.session import lazy_session

    found = locate(options)
    session = lazy_session(found.state_root, found.settings, found.storage_options, keep=found.keep)
    yield session
    session.memory.leave()
