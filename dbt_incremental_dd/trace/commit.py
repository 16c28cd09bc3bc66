"""What one commit says: files that come and go, and frontiers that move, as actions of the Delta protocol."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from deltalake import CommitProperties, Transaction
from deltalake.transaction import AddAction, RemoveAction

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.trace import entries
from dbt_incremental_dd.trace.actions import add_action

UPPER, SINCE, MANIFEST = "dd:upper", "dd:since", "dd:manifest"
TRANSACTIONS = (UPPER, SINCE, MANIFEST)
Action = AddAction | RemoveAction


@dataclass(frozen=True)
class Commit:
    """The contents of one commit. None leaves a frontier or the manifest unchanged.

    ``replace_all`` drops every file and adopts ``schema``, in the same commit.
    """

    add: tuple[DataFile, ...] = ()
    remove: tuple[DataFile, ...] = ()
    upper: Time | None = None
    since: Time | None = None
    manifest: int | None = None
    schema: Schema | None = None
    replace_all: bool = False
    changes_data: bool = True


def actions_of(commit: Commit, schema: Schema) -> list[Action]:
    """The files that come and go; what ``replace_all`` drops is not among them."""
    now = int(time.time() * 1000)
    actions: list[Action] = [add_action(file, schema, changes_data=commit.changes_data, now=now) for file in commit.add]
    if not commit.replace_all:
        actions += [
            RemoveAction(path=file.path, data_change=commit.changes_data, deletion_timestamp=now, size=file.bytes)
            for file in commit.remove
        ]
    return actions


def transactions(commit: Commit) -> list[Transaction]:
    """The frontiers that move, and the manifest."""
    values = (commit.upper, commit.since, commit.manifest)
    wanted = zip(TRANSACTIONS, values, strict=True)
    return [Transaction(name, value) for name, value in wanted if value is not None]


def properties(commit: Commit, actions: Sequence[Action] | None = None) -> CommitProperties:
    """``actions``: all other actions, if they are known."""
    moved = transactions(commit)
    counted = {entries.TRANSACTIONS: str(len(moved))}
    if actions is not None:
        counted[entries.LINES] = str(len(actions) + len(moved) + 1)
    return CommitProperties(custom_metadata=counted, app_transactions=moved, max_commit_retries=15)
