"""SELECTs over collections: the rows are those of Python's own account of them, at every time."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings

from dbt_incremental_dd.core.errors import FrontierError, QueryError
from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import LONG, STRING, Decimal
from dbt_incremental_dd.query.engine import QueryEngine
from dbt_incremental_dd.query.session import Session
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.write import write_arrow
from tests.subscribe.stored import Rows, Stored
from tests.subscribe.test_subscription import STEPS, write


def rows(session: Session, sql: str, *parameters: object) -> list[tuple[object, ...]]:
    found = session.select(sql, parameters).batches
    return [tuple(row.values()) for batch in found for row in batch.to_pylist()]


@settings(max_examples=25)
@given(STEPS)
def test_every_time_reads_as_it_was(steps: list[list[tuple[int, list[tuple[int, str | None]], int]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stored, held, upper = Stored(Path(folder)), Counter(), 10
        stored.commit({}, upper)
        session, was = Session(QueryEngine(stored.place.storage)), {}
        for step in steps:
            upper = write(stored, held, step, upper)
            was[upper - 1] = Counter(+held)
            assert Counter(rows(session, "select * from m.kept")) == +held
        for t, then in was.items():
            assert Counter(rows(session, f"SELECT k, v FROM kept AS OF {t}")) == then
            assert rows(session, f"select count(*) from kept where k > 0 as of {t}") == [
                (sum(n for (k, _), n in then.items() if k > 0),)
            ]


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    made = Stored(tmp_path)
    made.commit({10: Counter({(1, "a"): 1, (2, "b"): 3})}, 11)
    made.commit({20: Counter({(2, "b"): -1, (3, None): 1})}, 31)
    return made


def test_times(stored: Stored) -> None:
    session = Session(QueryEngine(stored.place.storage))
    assert session.select("select * from kept").as_of == 30
    assert session.select("select * from kept", as_of=12).as_of == 12
    assert session.select("select 1").as_of is None
    assert rows(session, "select count(*) from m.kept as of timestamp '1970-01-01 00:00:00.012'") == [(4,)]
    assert rows(
        session, "select k as of_k, count(*) as n from kept group by all order by k AS OF '1970-01-01 00:00:00.02Z';"
    ) == [(1, 1), (2, 2), (3, 1)]
    stored.forget(15)
    for sql, said in (("AS OF 12", "since"), ("AS OF 31", "final only up to")):
        with pytest.raises(FrontierError, match=said):
            session.select(f"select * from kept {sql}")
    for told in ("AS OF", "AS OF now()", "AS OF 1, 2"):
        with pytest.raises(QueryError, match="is not a time"):
            session.select(f"select * from kept {told}")


def test_parameters_and_names(stored: Stored) -> None:
    session = Session(QueryEngine(stored.place.storage))
    assert rows(session, "select k from KEPT where v = $1 and k < $2", "b", 5) == [(2,), (2,)]
    assert rows(session, 'with kept as (select 5 as k) select k from "m"."kept" where k = 3') == [(3,)]
    assert rows(session, "select table_schema, table_name from information_schema.tables where table_schema = 'm'") == [
        ("m", "kept")
    ]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("delete from kept", "only SELECT"),
        ("create table x as select 1", "only SELECT"),
        ("copy kept to '/tmp/x'", "only SELECT"),
        ("attach '/tmp/x.db'", "only SELECT"),
        ("select 1; select 2", "one statement"),
        ("select * from nosuch", "nosuch"),
        ("select nosuch from kept", "nosuch"),
        ("selec", "syntax"),
        ("select 'a", "quote|unterminated|cannot be read"),
        ("select * from read_csv('/etc/passwd')", "disabled|permission|Permission"),
        ("select * from '/etc/passwd'", "/etc/passwd"),
        ("select cast(v as int) from kept", "Conversion|convert"),
    ],
)
def test_what_cannot_be_answered(stored: Stored, sql: str, said: str) -> None:
    session = Session(QueryEngine(stored.place.storage))
    with pytest.raises(QueryError, match=said):
        list(session.select(sql).batches)
    assert rows(session, "select count(*) from kept") == [(4,)]


def test_collections_that_come_and_change_and_go(stored: Stored, tmp_path: Path) -> None:
    session = Session(QueryEngine(stored.place.storage))
    assert len(rows(session, "select * from kept")) == 4
    wider = Schema((Column("k", LONG), Column("v", STRING), Column("w", Decimal(5, 2)), TIME_COLUMN, DIFF_COLUMN))
    place = Storage(str(tmp_path)).collection("other.kept")
    log = place.create(wider)
    manifest = place.write_manifest(ModelManifest(schema=Schema(wider.columns[:3])))
    log.commit(Commit(upper=50, manifest=manifest))
    with pytest.raises(QueryError, match="may be any of"):
        session.select("select * from kept")
    assert session.select("select * from other.kept").schema.field("w").type == pa.decimal128(5, 2)
    # A file from before has no such column.
    table = pa.table({"k": [7], "v": ["x"], "dd_time": [55], "dd_diff": [2]})
    log = place.log()
    assert log is not None
    file = write_arrow(place.storage, place.trace_uri, table, Schema((*wider.columns[:2], *wider.columns[3:])))
    log.commit(Commit(add=(file,), upper=60))
    assert rows(session, "select * from other.kept") == [(7, "x", None)] * 2
    place.remove()
    with pytest.raises(QueryError, match="kept does not exist"):
        session.select("select * from other.kept")
    assert len(rows(session, "select * from kept")) == 4


def test_two_collections_are_read_at_one_time(stored: Stored, tmp_path: Path) -> None:
    place = Storage(str(tmp_path)).collection("m.later")
    schema = Schema((Column("k", LONG), TIME_COLUMN, DIFF_COLUMN))
    log = place.create(schema)
    table = pa.table({"k": [1, 9], "dd_time": [5, 15], "dd_diff": [1, 1]})
    file = write_arrow(place.storage, place.trace_uri, table, schema)
    log.commit(Commit(add=(file,), upper=16))
    session = Session(QueryEngine(stored.place.storage))
    answer = session.select("select (select count(*) from kept), (select count(*) from later)")
    assert answer.as_of == 15
    assert rows(session, "select (select count(*) from kept), (select count(*) from later)") == [(4, 2)]


def test_counts_that_rows_are_held_with(stored: Stored) -> None:
    held: Rows = Counter({(2, "b"): 2})
    session = Session(QueryEngine(stored.place.storage))
    assert Counter(rows(session, "select * from kept where k = 2")) == held


def test_collections_that_are_not_on_a_local_disk(stored: Stored) -> None:
    session = Session(QueryEngine(Storage(f"file://{stored.place.storage.root}")))
    assert rows(session, "select v, count(*) from kept where k < 3 group by v order by v") == [("a", 1), ("b", 2)]
    assert rows(session, "select count(*) from m.kept as of 15") == [(4,)]
    stored.commit({40: Counter({(9, "z"): 2})}, 41)
    first = session.select("select * from kept where k = 9")
    assert rows(session, "select count(*) from kept as of 15") == [(4,)]
    assert sum(batch.num_rows for batch in first.batches) == 2


def test_names_with_dots(tmp_path: Path) -> None:
    place = Storage(str(tmp_path)).collection("a.b.c")
    place.create(Schema((Column("k", LONG), TIME_COLUMN, DIFF_COLUMN))).commit(Commit(upper=5))
    assert rows(Session(QueryEngine(place.storage)), 'select * from "a.b".c') == []
