"""A session that is opened ahead is the one that is asked for later, once; what goes wrong is raised then."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from dbt_incremental_dd.core.errors import SessionError
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.relation.lazy_session import ANSI, TIME_ZONE, LazySession, SessionMemory, expected_settings
from dbt_incremental_dd.runtime.compile import fingerprint


def test_it_is_opened_once() -> None:
    opened: list[str] = []
    may_open = threading.Event()

    def open_it() -> Any:
        may_open.wait(10)
        opened.append(threading.current_thread().name)
        return object()

    session = LazySession(open_it)
    session.open_ahead()
    assert not session.is_open
    may_open.set()
    assert session.spark is session.spark
    assert opened == ["opens Spark's session"]


def test_what_goes_wrong_is_raised_to_whoever_asks() -> None:
    tried = threading.Event()

    def fail() -> Any:
        tried.set()
        raise SessionError("there is no Java", "Install it.")

    session = LazySession(fail)
    session.open_ahead()
    assert tried.wait(10)
    with pytest.raises(SessionError, match="there is no Java"):
        session.spark  # noqa: B018 - asked for


class _Known(SessionMemory):
    def __init__(self, **changed: str) -> None:
        self._settings = {**expected_settings({TIME_ZONE: "UTC", _NTZ: "TIMESTAMP_NTZ"}), **changed}

    @property
    def settings(self) -> Mapping[str, str]:
        return self._settings


_NTZ = "spark.sql.timestampType"


def test_what_expressions_mean_is_known_without_it() -> None:
    def never() -> Any:
        pytest.fail("a session is opened")

    assert LazySession(never, _Known()).unusual_rules == {_NTZ: "TIMESTAMP_NTZ"}
    query, changes = parsed("select 1 as a"), ({}, {TIME_ZONE: "Asia/Tokyo"}, {ANSI: "false"}, {_NTZ: "timestamp_ltz"})
    assert len({fingerprint(LazySession(never, _Known(**one)).meaning, query, {}, {}) for one in changes}) == len(
        changes
    )
