"""A session that is opened ahead is the one that is asked for later, once; what goes wrong is raised then."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from dbt_incremental_dd.core.errors import SessionError
from dbt_incremental_dd.relation.lazy_session import LazySession


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
