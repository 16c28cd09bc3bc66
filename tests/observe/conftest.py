"""Nothing of the user's environment is seen."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbt_incremental_dd.observe import background

_PREFIXES = ("OPENLINEAGE", "OTEL_", "TRACEPARENT", "TRACESTATE")


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """For every test of this folder. What OpenLineage's client copies of it to further variables goes as well."""
    background.background.cache_clear()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    before = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(_PREFIXES)}
    yield
    for name in [name for name in os.environ if name.startswith(_PREFIXES)]:
        del os.environ[name]
    os.environ.update(before)


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What comes to the root of all loggers, as where dbt's usage statistics have turned logging on."""
    found = io.StringIO()
    handler = logging.StreamHandler(found)
    logging.getLogger().addHandler(handler)
    yield found
    logging.getLogger().removeHandler(handler)
