"""Applies entries of a log that is known up to them, without reading the table.

Source: Delta transaction log protocol, "Actions".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.trace.actions import data_file_of

_ADD, _REMOVE, _TRANSACTION, _INFORMATION = "add", "remove", "txn", "commitInfo"


@dataclass(frozen=True)
class Entry:
    """What a commit did: files that came, paths of those that went, and transactions that moved."""

    added: tuple[DataFile, ...]
    removed: frozenset[str]
    moved: Mapping[str, int]


def read_entry(data: bytes, schema: Schema) -> Entry | None:
    """None for an entry that does anything else, such as changing columns, or that is damaged."""
    try:
        actions = [json.loads(line) for line in data.splitlines() if line.strip()]
        kinds = [next(iter(action)) for action in actions]
        if not actions or not {_ADD, _REMOVE, _TRANSACTION, _INFORMATION}.issuperset(kinds):
            return None
        of_kind: dict[str, list[dict[str, Any]]] = {kind: [] for kind in (_ADD, _REMOVE, _TRANSACTION, _INFORMATION)}
        for kind, action in zip(kinds, actions, strict=True):
            of_kind[kind].append(action[kind])
        return Entry(
            tuple(data_file_of(action, schema) for action in of_kind[_ADD]),
            frozenset(str(action["path"]) for action in of_kind[_REMOVE]),
            {str(one["appId"]): int(one["version"]) for one in of_kind[_TRANSACTION]},
        )
    except (ValueError, TypeError, KeyError, StopIteration, AttributeError):
        return None
