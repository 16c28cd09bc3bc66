"""Warnings as dbt has them: ``--warn-error`` makes errors of them."""

from __future__ import annotations

import threading
from collections.abc import Hashable

from dbt.adapters.events.types import AdapterEventWarning
from dbt_common.events.functions import warn_or_error

_GIVEN: set[Hashable] = set()
_LOCK = threading.Lock()


def warn_once(subject: Hashable, text: str) -> None:
    """Warns of a subject once in a process. As an error it is raised each time."""
    with _LOCK:
        if subject not in _GIVEN:
            warn_or_error(AdapterEventWarning(name="Differential", base_msg=text, args=[]))
            _GIVEN.add(subject)
