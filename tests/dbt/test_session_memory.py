"""What is remembered of a session's catalog, where others' statements may have changed it."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.adapter.bindings import BoundSession
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.session_memory import StoredMemory
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Catalog:
    """A metastore's files, and what processes remember of it one after the other."""

    def __init__(self, spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._spark = spark
        self._folder = folder
        self._at_exit: list[Callable[[], object]] = []
        (folder / "metastore" / "log").mkdir(parents=True)
        for name in ("service.properties", "dbex.lck", "log/log1.dat"):
            (folder / "metastore" / name).touch()
        monkeypatch.setattr(atexit, "register", lambda call, *given: self._at_exit.append(partial(call, *given)))

    def memory(self) -> StoredMemory:
        """Of a process that has not opened its session."""
        return StoredMemory(Storage(str(self._folder)), {}, str(self._folder / "metastore"))

    def opened(self) -> LazySession:
        """The session of a process that has."""
        session = LazySession(lambda: self._spark, self.memory())
        assert session.spark is self._spark
        return session

    def leave(self) -> None:
        """The process ends."""
        self._at_exit.pop()()


@pytest.fixture
def catalog(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    return Catalog(spark, tmp_path, monkeypatch)


def _execute(session: LazySession, sql: str, meanwhile: str = "s.t") -> int:
    """The adapter's statement; a table is seen while it is under way. How often it is told as one of the command's."""
    asked: list[str] = []

    class Cursor:
        def cursor(self) -> Any:
            return self

        def execute(self, text: str) -> None:
            session.memory.keep_table(meanwhile)
            session.spark.sql(text)

    BoundSession(Cursor(), session, lambda: asked.append(sql)).cursor().execute(sql)
    return len(asked)


def test_tables_count_that_were_seen_after_the_last_statement(catalog: Catalog) -> None:
    session = catalog.opened()
    session.memory.keep_table("s.before")
    _execute(session, "CREATE OR REPLACE TEMP VIEW of_somebody AS SELECT 1", meanwhile="s.meanwhile")
    session.memory.keep_table("s.after")
    assert not catalog.memory().has_table("s.after"), "how it leaves the catalog is not known yet"
    catalog.leave()
    names = ("before", "meanwhile", "after")
    assert [name for name in names if catalog.memory().has_table(f"s.{name}")] == ["after"]


def test_statements_that_only_read_are_no_reason_for_doubt(catalog: Catalog) -> None:
    session = catalog.opened()
    session.memory.keep_table("s.before")
    _execute(session, "/* why */ SELECT 1", meanwhile="s.meanwhile")
    catalog.leave()
    assert catalog.memory().has_table("s.before") and catalog.memory().has_table("s.meanwhile")


def test_tables_of_an_earlier_process_are_doubted_too(catalog: Catalog) -> None:
    catalog.opened().memory.keep_table("s.t")
    catalog.leave()
    catalog.opened()
    catalog.leave()
    assert catalog.memory().has_table("s.t")
    _execute(catalog.opened(), "CREATE OR REPLACE TEMP VIEW of_somebody AS SELECT 2", meanwhile="s.other")
    catalog.leave()
    assert not catalog.memory().has_table("s.t")


def test_a_command_with_statements_is_remembered_until_it_has_none(catalog: Catalog) -> None:
    catalog.memory().keep_statements("run")
    assert not catalog.memory().has_statements("run")
    memory = catalog.memory()
    for command in ("run", "build"):
        memory.note_statement(command)
        memory.keep_statements(command)
    catalog.opened()
    catalog.leave()
    assert catalog.memory().has_statements("run") and catalog.memory().has_statements("build")
    catalog.memory().keep_statements("run")
    assert not catalog.memory().has_statements("run") and catalog.memory().has_statements("build")


def test_what_a_command_asks_once_is_no_sign_of_more(catalog: Catalog) -> None:
    session = catalog.opened()
    assert _execute(session, "/* dbt */ SHOW SCHEMAS") == 0
    assert _execute(session, "create schema if not exists default") == 0
    assert _execute(session, "CREATE OR REPLACE TEMP VIEW of_somebody AS SELECT 3") == 1
    assert _execute(session, "select 1") == 1
