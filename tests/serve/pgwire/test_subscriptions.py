"""SUBSCRIBE over the wire: every form of it, and that what is delivered adds up to what is stored."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt_incremental_dd.core import types
from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
)
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.holds import holds
from dbt_incremental_dd.trace.write import write_arrow
from tests.serve.pgwire.conftest import Server, eventually
from tests.subscribe.stored import Stored, rows_of
from tests.subscribe.test_subscription import STEPS, write

Connection = psycopg.Connection[Any]
SOON = "with (timeout = '5s')"


def names(cursor: psycopg.Cursor[Any]) -> list[str]:
    return [column.name for column in cursor.description or ()]


def fetched(connection: Connection, name: str, rows: int) -> list[tuple[Any, ...]]:
    """So many rows at least, from as many FETCHes as it takes."""
    found: list[tuple[Any, ...]] = []
    while len(found) < rows:
        more = connection.execute(f"fetch all {name} {SOON}").fetchall()
        assert more, f"only {found}"
        found += more
    return found


@settings(max_examples=15)
@given(STEPS, st.booleans())
def test_what_is_fetched_is_what_is_stored(
    steps: list[list[tuple[int, list[tuple[int, str | None]], int]]], is_late: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stored, held, upper = Stored(Path(folder)), Counter(), 10
        stored.commit({}, upper)
        server = Server(stored)
        try:
            with server.connect() as connection:
                connection.execute("begin")
                connection.execute("declare c cursor for subscribe kept with (progress)")
                has, at = Counter(), 0
                for number, step in enumerate(steps):
                    upper = write(stored, held, step, upper)
                    if is_late and number % 3 and number < len(steps) - 1:
                        continue
                    while at < upper:
                        for t, progressed, diff, k, v in fetched(connection, "c", 1):
                            assert t >= at
                            if not progressed:
                                has[k, v] += diff
                                continue
                            is_first, at = at == 0, int(t)
                            assert (diff, k, v) == (None, None, None)
                            assert is_first or +has == rows_of(stored.collection.as_of(at - 1))
                    assert +has == +held
        finally:
            server.close()


def test_columns_and_fetches(server: Server, stored: Stored) -> None:
    with server.connect() as connection:
        connection.execute("begin; declare c cursor for subscribe to m.kept")
        first = connection.execute("fetch 2 from c")
        assert names(first) == ["mz_timestamp", "mz_diff", "k", "v"]
        assert [column.type_code for column in first.description or ()] == [1700, 20, 20, 25]
        rest = connection.execute("fetch all from c").fetchall()
        assert sorted([*first.fetchall(), *rest], key=str) == [(30, 1, 1, "a"), (30, 1, 2, "b"), (30, 1, 3, None)]
        began = time.monotonic()
        assert connection.execute("fetch all c with (timeout = '0s')").fetchall() == []
        assert time.monotonic() - began < 0.25
        assert connection.execute("fetch 5 c with (timeout 300 ms)").fetchall() == []
        assert 0.55 > time.monotonic() - began >= 0.3
        later = threading.Timer(0.2, lambda: stored.commit({40: Counter({(1, "a"): -1})}, 41))
        later.start()
        assert connection.execute("fetch 10 c").fetchall() == [(40, -1, 1, "a")]
        assert connection.execute("fetch all c with (timeout = '00:00:00')", binary=True).fetchall() == []


def test_progress(server: Server, stored: Stored) -> None:
    with server.connect() as connection:
        connection.execute("begin; declare c cursor for subscribe kept with (progress) as of 10")
        connection.execute("declare d cursor for subscribe kept with (progress, snapshot = false) as of 10 up to 25")
        rows = fetched(connection, "c", 7)
        assert names(connection.execute("fetch 0 c")) == ["mz_timestamp", "mz_progressed", "mz_diff", "k", "v"]
        assert rows[0] == (10, True, None, None, None)
        assert sorted(rows[1:3]) == [(10, False, 1, 1, "a"), (10, False, 2, 2, "b")]
        assert rows[3] == (11, True, None, None, None)
        assert sorted(rows[4:6]) == [(20, False, -1, 2, "b"), (20, False, 1, 3, None)]
        assert rows[6] == (31, True, None, None, None)
        stored.commit({}, 36)
        assert connection.execute(f"fetch all c {SOON}").fetchall() == [(36, True, None, None, None)]
        ended = fetched(connection, "d", 4)
        assert ended[0] == (11, True, None, None, None) and ended[-1] == (25, True, None, None, None)
        assert len(ended) == 4 and connection.execute("fetch all d").fetchall() == []


def test_by_key(server: Server, stored: Stored) -> None:
    stored.commit({40: Counter({(1, "a"): -1, (1, "z"): 1, (3, None): -1})}, 41)
    stored.commit({50: Counter({(1, "y"): 1})}, 51)
    with server.connect() as connection:
        sql = "subscribe kept envelope upsert (key (v)) as of 20 up to 31"
        assert set(connection.execute(sql)) == {(20, "upsert", "a", 1), (20, "upsert", "b", 2), (20, "upsert", None, 3)}
        cursor = connection.execute(
            "subscribe (select v as w, k from kept where k <> 2) envelope upsert (key (k)) "
            "with (progress, snapshot false) as of 20 up to 51"
        )
        assert names(cursor) == ["mz_timestamp", "mz_progressed", "mz_state", "k", "w"]
        assert sorted(row for row in cursor if not row[1]) == [
            (40, False, "delete", 3, None),
            (40, False, "upsert", 1, "z"),
            (50, False, "upsert", 1, "y"),
        ]
        violated = connection.execute("subscribe kept envelope upsert (key (k)) as of 10 up to 11").fetchall()
        assert sorted(violated) == [(10, "key_violation", 2, None), (10, "upsert", 1, "a")]


def test_selections(connection: Connection) -> None:
    cursor = connection.execute(
        "subscribe (select k * 10 as ten, upper(v) from m.kept where v = %s) as of 10 up to %s", ["b", 31]
    )
    assert names(cursor)[2:] == ["ten", "UPPER(v)"]
    assert cursor.fetchall() == [(10, 2, 20, "B"), (20, -1, 20, "B")]
    with pytest.raises(psycopg.errors.SyntaxError):
        connection.execute("subscribe (select max(k) from kept) up to 40")


def test_older_words(connection: Connection) -> None:
    assert connection.execute("TAIL m.kept WITHOUT SNAPSHOT AS OF 10 UP TO 31").rowcount == 2
    assert connection.execute("tail kept with snapshot as of 10 up to 11").rowcount == 2


def test_times_that_are_gone(connection: Connection, stored: Stored) -> None:
    stored.forget(15)
    with pytest.raises(psycopg.errors.NumericValueOutOfRange, match="since"):
        connection.execute("subscribe kept as of 12 up to 31")


def test_streams(server: Server, stored: Stored) -> None:
    with server.connect() as connection:
        found = []
        for row in connection.cursor().stream("subscribe kept as of 20"):
            found.append(row)
            if len(found) == 3:
                stored.commit({40: Counter({(4, "d"): 1})}, 41)
            if len(found) == 4:
                break
        assert found[3] == (40, 1, 4, "d")
        assert connection.execute("select 1").fetchone() == (1,)
    assert eventually(lambda: server.hub.followers == {})


def test_copies_come_at_once(server: Server, stored: Stored) -> None:
    with server.connect() as connection, connection.cursor().copy("copy (subscribe kept as of 20) to stdout") as copy:
        found = [copy.read_row() for _ in range(3)]
        assert sorted(found, key=str) == [("20", "1", "1", "a"), ("20", "1", "2", "b"), ("20", "1", "3", None)]
        stored.commit({40: Counter({(4, "d\t"): 1})}, 41)
        assert copy.read_row() == ("40", "1", "4", "d\t")
        connection.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled):
            copy.read_row()
    with (
        server.connect() as connection,
        connection.cursor().copy("copy (subscribe kept as of 10 up to 11) to stdout with (format csv, header)") as copy,
    ):
        assert sorted(b"".join(map(bytes, copy)).split()) == [b"10,1,1,a", b"10,2,2,b", b"mz_timestamp,mz_diff,k,v"]


def test_a_fetch_that_is_canceled_loses_nothing(server: Server, stored: Stored) -> None:
    with server.connect() as connection:
        cursor = connection.cursor("held", withhold=True)
        cursor.execute("subscribe kept as of 20")
        assert len(cursor.fetchmany(3)) == 3
        threading.Timer(0.2, connection.cancel_safe).start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("fetch 1 held")
        stored.commit({40: Counter({(4, "d"): 1})}, 41)
        assert cursor.fetchmany(1) == [(40, 1, 4, "d")]


def test_a_client_that_goes_is_forgotten(server: Server, stored: Stored) -> None:
    waiting = server.connect()
    waiting.execute("begin; declare c cursor for subscribe kept; fetch all c")
    waiting.pgconn.send_query(b"fetch all c")
    copying = server.connect()
    copying.pgconn.send_query(b"copy (subscribe kept) to stdout")
    assert eventually(lambda: server.hub.followers == {"m.kept": 2})
    assert holds(stored.place.storage)
    with server.connect() as other:
        waiting.pgconn.finish()
        copying.pgconn.finish()
        assert eventually(lambda: server.connections == 1 and server.hub.followers == {})
        assert eventually(lambda: holds(stored.place.storage) == {})
        assert other.execute("select count(*) from kept").fetchone() == (3,)


def test_cursors_end_with_their_transaction(server: Server) -> None:
    with server.connect() as connection:
        for end in ("commit", "rollback", "close c; rollback", "discard all; rollback"):
            connection.execute("begin; declare c cursor for subscribe kept")
            assert server.hub.followers == {"m.kept": 1}
            connection.execute(end)
            assert server.hub.followers == {}


def test_columns_that_change_end_it(server: Server, stored: Stored) -> None:
    with server.connect() as connection:
        connection.execute("begin; declare c cursor for subscribe kept; fetch all c")
        wider = Schema((Column("k", LONG), Column("v", STRING), Column("w", DOUBLE)))
        log = stored.place.log()
        assert log is not None
        log = stored.place.create(Schema((*wider.columns, TIME_COLUMN, DIFF_COLUMN)))
        table = pa.table({"k": [9], "v": ["x"], "w": [0.5], "dd_time": [45], "dd_diff": [1]})
        file = write_arrow(stored.place.storage, stored.place.trace_uri, table, log.schema)
        manifest = stored.place.write_manifest(ModelManifest(schema=wider))
        log.commit(Commit(add=(file,), upper=50, manifest=manifest))
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="have changed") as raised:
            connection.execute(f"fetch all c {SOON}")
        assert "SUBSCRIBE again" in str(raised.value.diag.message_hint)


@pytest.fixture
def wide(stored: Stored) -> Iterator[Stored]:
    """``m.wide`` with a row of each kind, and one of NULLs."""
    kinds = {
        **{"d": types.Decimal(20, 5), "t": TIMESTAMP, "n": TIMESTAMP_NTZ, "day": DATE, "b": BINARY, "f": DOUBLE},
        **{"r": FLOAT, "s": SHORT, "yes": BOOLEAN, "l": Array(INTEGER)},
    }
    visible = Schema(tuple(Column(name, kind) for name, kind in kinds.items()))
    place = stored.place.storage.collection("m.wide")
    log = place.create(Schema((*visible.columns, TIME_COLUMN, DIFF_COLUMN)))
    us = 1_714_564_800_000_001
    arrays = {
        "d": pa.array([Decimal("-1.50000"), None], pa.decimal128(20, 5)),
        "t": pa.array([us, None], pa.timestamp("us", "UTC")),
        "n": pa.array([us, None], pa.timestamp("us")),
        "day": pa.array([19844, None], pa.int32()).cast(pa.date32()),
        "b": pa.array([b"\x00\xff", None], pa.binary()),
        "f": pa.array([float("-inf"), None], pa.float64()),
        "r": pa.array([0.1, None], pa.float32()),
        "s": pa.array([-7, None], pa.int16()),
        "yes": pa.array([False, None], pa.bool_()),
        "l": pa.array([[1, None], None], pa.list_(pa.int32())),
        "dd_time": pa.array([10, 10], pa.int64()),
        "dd_diff": pa.array([1, 1], pa.int64()),
    }
    file = write_arrow(place.storage, place.trace_uri, pa.table(arrays), log.schema)
    manifest = place.write_manifest(ModelManifest(schema=visible))
    log.commit(Commit(add=(file,), upper=11, manifest=manifest))
    yield stored


@pytest.mark.parametrize("binary", [False, True])
def test_values_are_those_of_a_select(wide: Stored, server: Server, binary: bool) -> None:
    with server.connect() as connection:
        cursor = connection.cursor(binary=binary)
        selected = cursor.execute("select * from wide order by d").fetchall()
        subscribed = cursor.execute("subscribe wide up to 11").fetchall()
        assert sorted((row[2:] for row in subscribed), key=str) == sorted(selected, key=str)
        assert all(type(row[0]) is Decimal and row[:2] == (10, 1) for row in subscribed)
        full = next(row for row in selected if row[0] is not None)
        assert str(full[0]) == "-1.50000" and full[4:] == (b"\x00\xff", float("-inf"), full[6], -7, False, [1, None])
        assert [moment.microsecond for moment in full[1:3]] == [1, 1] and abs(full[6] - 0.1) < 1e-7
        assert (None,) * 10 in selected


def test_many_clients_follow(server: Server, stored: Stored) -> None:
    async def one() -> Counter[Any]:
        has: Counter[Any] = Counter()
        async with await psycopg.AsyncConnection.connect(server.dsn, autocommit=True) as connection:
            async for _, diff, k, v in connection.cursor().stream("subscribe kept up to 100"):
                has[k, v] += diff
        return +has

    async def all_of_them() -> list[Counter[Any]]:
        tasks = [asyncio.create_task(one()) for _ in range(8)]
        while server.hub.followers.get("m.kept") != 8:
            await asyncio.sleep(0.01)
        for t in range(40, 100, 20):
            await asyncio.to_thread(
                stored.commit, {t: Counter({(t, "n"): 1, (t - 20, "n"): -1 if t > 40 else 0})}, t + 1
            )
            await asyncio.sleep(0.02)
        await asyncio.to_thread(stored.commit, {}, 100)
        return await asyncio.wait_for(asyncio.gather(*tasks), 20)

    wanted = {(1, "a"): 1, (2, "b"): 1, (3, None): 1, (80, "n"): 1}
    assert all(has == wanted for has in asyncio.run(all_of_them()))
