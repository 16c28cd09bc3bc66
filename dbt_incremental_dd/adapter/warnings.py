"""Warnings as dbt has them: ``--warn-error`` makes errors of them."""

from __future__ import annotations

import threading
from collections.abc import Hashable

from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.events.types import AdapterEventWarning
from dbt_common.events.functions import warn_or_error

from dbt_incremental_dd.runtime.preview import stored_columns
from dbt_incremental_dd.runtime.request import ModelRequest
from dbt_incremental_dd.trace.layout import Storage

logger = AdapterLogger("Differential")

_GIVEN: set[Hashable] = set()
_LOCK = threading.Lock()


def warn_once(subject: Hashable, text: str) -> None:
    """Warns of a subject once in a process. As an error it is raised each time."""
    with _LOCK:
        if subject not in _GIVEN:
            warn_or_error(AdapterEventWarning(name="Differential", base_msg=text, args=[]))
            _GIVEN.add(subject)


def say_once(subject: Hashable, text: str) -> None:
    """Warns of a subject once in a process, where it is no reason for a run to fail, whatever ``--warn-error`` says."""
    with _LOCK:
        is_new = subject not in _GIVEN
        _GIVEN.add(subject)
    if is_new:
        logger.warning(text)


def warn_of_absent(storage: Storage, request: ModelRequest) -> None:
    """Warns of columns that ``persist_docs`` describes, but that the model has not."""
    described = [name for name, _ in request.config.description.columns]
    stored = stored_columns(storage, request.name) if described else None
    columns = {column.name.lower() for column in stored or ()}
    absent = ", ".join(name for name in described if name.lower() not in columns)
    if absent:
        text = f"model {request.name}: persist_docs describes columns that it does not have: {absent}"
        warn_once((request.name, absent), text)
