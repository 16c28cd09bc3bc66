"""The run of dbt's invocation; those of former invocations of the process are dropped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from dbt.adapters.differential.command import current_command
from dbt.adapters.differential.requests import run_time
from dbt.adapters.differential.warnings import say_once
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.invocation import get_invocation_id

from dbt_incremental_dd.observe.registry import observers_of
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.trace.layout import Storage

logger = AdapterLogger("Differential")

_RUNS: dict[tuple[str, str], Run] = {}
_LOCK = threading.Lock()


def run_of(config: Any, storage: Storage, session: Callable[[], LazySession], dd_time: Any) -> Run:
    """The invocation's run on a state root; its models share it. ``config``: the project's. Raises DifferentialError
    where it cannot begin."""
    key = (get_invocation_id(), storage.root)
    with _LOCK:
        if key not in _RUNS:
            for old in [other for other in _RUNS if other[0] != key[0]]:
                del _RUNS[old]
            kept = config.credentials.runs_kept
            observers = observers_of(current_command(config, storage), say_once)
            _RUNS[key] = Run(session(), storage, key[0], run_time(dd_time), logger.info, kept, observers)
        return _RUNS[key]


def finish() -> None:
    """What is on its way to object storage arrives. Raises DifferentialError where it does not."""
    with _LOCK:
        runs = list(_RUNS.values())
    for run in runs:
        run.finish()
