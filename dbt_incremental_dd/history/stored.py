"""What is stored of a history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dbt_incremental_dd.core.schema import DIFF_COLUMN, Schema
from dbt_incremental_dd.history.history import History
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.keys import Keys
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.stored import read, with_keys
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.spark_reader import quote_name


class KnownVersions(Protocol):
    """What a history goes on from."""

    def of(self, workspace: Workspace, keys: Keys) -> Relation:
        """The intervals of these keys, each as often as it counts."""


@dataclass(frozen=True)
class GivenVersions:
    """Those that are to be stored; ``rows`` have the query's columns and the added ones."""

    rows: Relation

    def of(self, workspace: Workspace, keys: Keys) -> Relation:
        """Of these keys."""
        return keys.restricted(self.rows).consolidate()


@dataclass(frozen=True)
class StoredHistory:
    """A history's log, and its columns: the query's and the added ones."""

    log: Log
    schema: Schema

    def of(self, workspace: Workspace, keys: Keys) -> Relation:
        """The intervals of these keys, each as often as it counts. Where every column of the keys has a NULL, they
        cannot be looked for: what is stored is read whole, on the driver if it is not much."""
        schema = self.schema + Schema((DIFF_COLUMN,))
        if keys.is_local and not keys.values:
            files, most = self.log.summands(self.log.frontiers.last), workspace.thresholds.found_rows
            return keys.restricted(read(workspace, self.log.uri, files, schema, most=most)).consolidate()
        return with_keys(workspace, self.log, schema, keys).consolidate()


def is_open(history: History) -> str:
    """SQL: whether an interval has no end yet."""
    return f"({quote_name(history.names['to'])} <=> {history.end})"


def is_gone(history: History) -> str:
    """SQL: whether an interval stands for a row that is gone."""
    deleted = history.names.get("deleted")
    return f"({quote_name(deleted)} = 'True')" if deleted else "FALSE"


def current_rows(history: History, intervals: Relation, query: Sequence[str]) -> Relation:
    """The query's rows that have an open interval."""
    return intervals.filter(Expr(f"{is_open(history)} AND NOT {is_gone(history)}")).columns(query)
