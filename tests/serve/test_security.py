"""What clients must not be able to do: write, read other files, see what is hidden, or keep the server from others."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import httpx
import psycopg
import pytest

from dbt_incremental_dd.cli import main
from dbt_incremental_dd.core.errors import ConfigError, FrontierError, QueryCanceled, QueryError, StateError
from dbt_incremental_dd.query import engine as engine_module
from dbt_incremental_dd.query.engine import QueryEngine
from dbt_incremental_dd.query.session import Session
from dbt_incremental_dd.serve.server import ServerOptions
from dbt_incremental_dd.untrusted.limits import Limits, Watchdog, parse_memory
from dbt_incremental_dd.untrusted.parsed_select import ParsedSelect
from tests.serve.serving import Served, serving
from tests.subscribe.stored import Stored

FOREVER = "select count(*) from range(1000000000000) a, range(1000000) b where a.range % 7 = b.range % 3"


def written(root: Path | str) -> dict[str, tuple[int, int]]:
    """All files below, with their sizes and times."""
    found = {}
    for path in sorted(Path(root).rglob("*")):
        if path.is_file():
            told = path.stat()
            found[str(path)] = (told.st_size, told.st_mtime_ns)
    return found


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    made = Stored(tmp_path_factory.mktemp("security") / "state")
    made.commit({10: Counter({(1, "a"): 1, (2, "b"): 2})}, 11)
    made.commit({20: Counter({(3, None): 1, (2, "b"): -1})}, 31)
    return made


@pytest.fixture(scope="module")
def served(stored: Stored) -> Iterator[Served]:
    with serving(Path(stored.place.storage.root), limits=Limits(seconds=20)) as found:
        yield found


@pytest.fixture(scope="module")
def wire(served: Served) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(f"host=127.0.0.1 port={served.wire} user=u dbname=dd", autocommit=True) as made:
        yield made


def ask(served: Served, statement: str, timeout: float = 30, **params: Any) -> httpx.Response:
    return httpx.post(f"{served.url}/sql", params=params, json={"statement": statement}, timeout=timeout)


WRITES = [
    "with x as materialized (copy (select 1) to '{root}/{name}.csv') select 1",
    "with x as (copy (select 1 as k) to '{data}' (format parquet)) select * from x",
    "with x as materialized (copy kept to 'stored://collections/m.kept/trace/forged.parquet') select 1",
    "with x as (select 1), y as (with z as (copy (select 1) to '{root}/{name}') select 1) select * from y",
    "select * from (with x as (copy (select 1) to '{root}/{name}') select 1)",
    "select (with x as (copy (select 1) to '{root}/{name}') select 1)",
    "with x as (insert into kept values (9, 'x') returning *) select * from x",
    "with x as (delete from kept returning *) select * from x",
    "with x as (update kept set k = 0 returning *) select * from x",
    "with x as (merge into kept using kept o on true when matched then delete) select 1",
    "with x as (create table y as select 1) select 1",
    "copy (select 1) to '{root}/{name}'",
    "copy kept to '{root}/{name}' (format parquet)",
    "export database '{root}/{name}'",
    "attach '{root}/{name}.db' as other",
    "create table x as select 1",
    "create or replace view kept as select 1",
    "create macro f(x) as x",
    "insert into kept values (1, 'a')",
    "install httpfs",
    "load httpfs",
    "set temp_directory = '{root}'",
    "set allowed_directories = ['/']",
    "reset lock_configuration",
    "pragma enable_profiling",
    "pragma profile_output = '{root}/{name}'",
    "checkpoint",
    "select * from enable_logging(storage_path := '{root}/{name}')",
    "select * from enable_profiling(save_location := '{root}/{name}')",
    "select write_log('x')",
    "select nextval('s')",
    "vacuum",
    "call enable_logging()",
    "prepare x as select 1",
]
READS = [
    "select * from read_text('/etc/passwd')",
    "select * from read_blob('/etc/pass*')",
    "select * from read_csv('/etc/passwd')",
    "select * from read_csv_auto('/etc/passwd')",
    "select * from read_json('{root}/x.json')",
    "select * from read_parquet('{data}')",
    "select * from parquet_scan('{data}')",
    "select * from parquet_metadata('{data}')",
    "select * from parquet_schema('stored://collections/m.kept/trace/x.parquet')",
    "select * from parquet_kv_metadata('{data}')",
    "select * from sniff_csv('/etc/passwd')",
    "select * from glob('/**')",
    "select * from read_duckdb('/tmp/x.db')",
    "select * from read_ndjson_objects('/etc/passwd')",
    "from '/etc/passwd'",
    "from '{data}'",
    "select * from 'stored://{below}'",
    'select * from "stored://{below}"',
    'with a as (with "stored://{below}" as (select 1) select 1) select * from "stored://{below}"',
    "describe '/etc/passwd'",
    "summarize '{data}'",
    "select (select max(content) from read_text('/etc/passwd'))",
    "select * from kept where v in (select content from read_text('/etc/passwd'))",
    "select * from kept, lateral (select * from read_text('/etc/passwd'))",
    "select list_transform([1], lambda x: getenv('HOME'))",
    "select getenv('HOME')",
    "select * from kept where current_setting('allowed_directories') is null",
    "select * from duckdb_settings()",
    "select * from duckdb_secrets()",
    "select * from duckdb_views()",
    "select * from duckdb_logs()",
    "select * from which_secret('s3://x', 's3')",
    "select * from pragma_storage_info('kept')",
    "select * from json_execute_serialized_sql('{{}}')",
    "select json_serialize_plan('select 1')",
    "select * from seq_scan('kept')",
    "select * from python_map_function()",
    "select * from arrow_scan(1, 2, 3)",
    "select * from pandas_scan(1)",
    "select * from histogram('/etc/passwd', 'x')",
]
HIDDEN = [
    "select count(*) from query_table('kept')",
    "select count(*) from query_table(['kept'])",
    "select count(*) from query('select * from kept')",
    "select * from histogram(kept, k)",
    "select * from memory.m.nosuch",
    "select * from system.information_schema.tables",
    "select * from kept at (version => 1)",
]


def filled(sql: str, stored: Stored) -> str:
    root = stored.place.storage.root
    data = next(Path(root).rglob("*.parquet"))
    name = f"made{abs(hash(sql)) % 10_000_000}"
    return sql.format(root=root, data=data, below=data.relative_to(root), name=name)


@pytest.mark.parametrize("sql", [*WRITES, *READS, *HIDDEN])
def test_what_is_refused(served: Served, wire: psycopg.Connection[Any], stored: Stored, sql: str) -> None:
    before, statement = written(stored.place.storage.root), filled(sql, stored)
    answer = ask(served, statement)
    assert answer.status_code == 400 and answer.json()["error"], answer.text
    with pytest.raises(psycopg.Error):
        wire.execute(statement).fetchall()
    # As a query of the Postgres catalog.
    with pytest.raises(psycopg.Error):
        wire.execute(
            f"{statement} -- \n , pg_class" if "from" not in statement else f"{statement}, pg_class"
        ).fetchall()
    assert written(stored.place.storage.root) == before
    assert wire.execute("select count(*) from kept").fetchone() == (3,)


@pytest.mark.parametrize("sql", [*READS, *HIDDEN, "select upper(v) from kept where sleep_ms(1000000) is null"])
def test_filters_of_subscriptions_are_refused_as_well(served: Served, stored: Stored, sql: str) -> None:
    condition = f"k in ({filled(sql, stored)})"
    answer = httpx.get(f"{served.url}/collections/kept/changes", params={"where": condition}, timeout=20)
    assert answer.status_code == 400


@pytest.mark.parametrize("sql", [*WRITES, *READS])
def test_duckdb_itself_writes_nothing(stored: Stored, monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    """Also where every statement is taken for one that only reads."""
    monkeypatch.setattr(engine_module, "parse_select", lambda _: ParsedSelect((("", "kept"),), frozenset()))
    before, statement = written(stored.place.storage.root), filled(sql, stored)
    engine = QueryEngine(stored.place.storage, Limits(seconds=10))
    with contextlib.suppress(QueryError, StateError):
        for batch in Session(engine).select(statement).batches:
            assert b"root:" not in str(batch.to_pylist()).encode()
    engine.close()
    assert written(stored.place.storage.root) == before
    assert not Path(".tmp").exists()


def test_all_names_of_a_collection_are_read_as_of_the_same_time(stored: Stored) -> None:
    session = Session(QueryEngine(stored.place.storage))
    for name in ("kept", "m.kept", "main.kept", "memory.m.kept", "memory.main.kept", 'MAIN."KEPT"'):
        for t, count in ((30, 3), (12, 3), (5, 0)):
            answer = session.select(f"select count(*) as n from {name}", as_of=t)
            assert [row["n"] for batch in answer.batches for row in batch.to_pylist()] == [count]
            assert answer.as_of == t


def test_readers_at_different_times_do_not_disturb_each_other(stored: Stored) -> None:
    engine, wrong = QueryEngine(stored.place.storage), []

    def read(t: int, count: int) -> None:
        session = Session(engine)
        for _ in range(40):
            answer = session.select("select count(*) as n, count(v) as m from kept", as_of=t)
            found = [tuple(row.values()) for batch in answer.batches for row in batch.to_pylist()]
            if found != [(count, count - (t >= 20))]:
                wrong.append((t, found))

    threads = [threading.Thread(target=read, args=one) for one in ((5, 0), (12, 3), (25, 3), (30, 3))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


ENDLESS = [
    FOREVER,
    "with recursive r as (select 1 as n union all select n + 1 from r) select count(*) from r",
    "select count(distinct hash(a.range)) from range(100000000000) a",
    "select sum(list_sum(range(x.range % 90000))) from range(100000000000) x",
    "select max(levenshtein(repeat('a', 300), repeat('b', (range % 300)::int))) from range(1000000000)",
    "select a.range from range(100000000000) a where a.range < 0",
]


@pytest.mark.parametrize("sql", ENDLESS)
def test_statements_end_at_their_time_limit(served: Served, sql: str) -> None:
    with psycopg.connect(f"host=127.0.0.1 port={served.wire} user=u dbname=dd", autocommit=True) as connection:
        connection.execute("set statement_timeout = '300ms'")
        begin = time.monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            connection.execute(sql).fetchall()
        assert time.monotonic() - begin < 10
        assert connection.execute("show statement_timeout").fetchone() == ("300ms",)
        assert connection.execute("select 1").fetchone() == (1,)
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            connection.execute("set statement_timeout = 'soon'")
        connection.execute("reset statement_timeout")
        assert connection.execute("show statement_timeout").fetchone() == ("20000ms",)
    options = f"host=127.0.0.1 port={served.wire} user=u dbname=dd options='-c statement_timeout=200'"
    with psycopg.connect(options) as connection, pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "select len(list(range)) from range(4000000000)",
        "select string_agg(range::varchar, ',') from range(4000000000)",
        "select range, count(*) from range(4000000000) group by 1 order by 2, 1",
        "select * from range(4000000000) order by hash(range)",
        "select histogram(range) from range(4000000000)",
        "select count(*) from range(400000000) a join range(400000000) b on a.range = b.range + 1",
        "select a.range, repeat('x', 90000) as y from range(100000000) a order by y, 1",
    ],
)
def test_memory_is_limited_for_all_statements_together(stored: Stored, sql: str) -> None:
    engine = QueryEngine(stored.place.storage, Limits(memory=128 << 20, seconds=60))
    with pytest.raises(QueryError, match=r"(?i)out of memory"):
        for _ in Session(engine).select(sql).batches:
            pass
    answer = Session(engine).select("select count(*) as n from kept")
    assert [row["n"] for batch in answer.batches for row in batch.to_pylist()] == [3]
    engine.close()
    assert not Path(".tmp").exists()


def test_the_process_is_watched_besides(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbt_incremental_dd.untrusted.limits._resident", iter([0, *[1 << 40] * 10_000]).__next__)
    engine = QueryEngine(stored.place.storage)
    with pytest.raises(QueryCanceled, match="out of memory"):
        list(Session(engine).select(FOREVER).batches)
    assert isinstance(engine._watchdog, Watchdog)


def test_four_abandoned_queries_keep_nobody_waiting(served: Served, wire: psycopg.Connection[Any]) -> None:
    body = json.dumps({"statement": FOREVER}).encode()
    for _ in range(4):
        with socket.create_connection(("127.0.0.1", served.port)) as client:
            head = f"POST /sql HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
            client.sendall(head.encode() + b"\r\n\r\n" + body)
            time.sleep(0.3)
        with socket.create_connection(("127.0.0.1", served.port)) as client:
            where = "k+%3E+(select+count(*)+from+range(1000000000000)+a,range(1000000)+b)"
            client.sendall(f"GET /collections/kept/rows?where={where} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            time.sleep(0.1)
    begin = time.monotonic()
    assert ask(served, "select count(*) as n from kept").json()["rows"] == [{"n": 3}]
    assert wire.execute("select count(*) from kept").fetchone() == (3,)
    assert time.monotonic() - begin < 1
    deadline = time.monotonic() + 10
    while computing() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not computing()


def test_clients_that_stay_do_not_stop_others(served: Served, wire: psycopg.Connection[Any]) -> None:
    def wait() -> None:
        with contextlib.suppress(httpx.HTTPError):
            ask(served, FOREVER, timeout=3)

    threads = [threading.Thread(target=wait) for _ in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    begin = time.monotonic()
    assert ask(served, "select count(*) as n from kept").json()["rows"] == [{"n": 3}]
    assert wire.execute("select count(*) from kept").fetchone() == (3,)
    with httpx.stream("GET", f"{served.url}/collections/kept/changes", timeout=5) as answer:
        assert next(answer.iter_text())
    assert time.monotonic() - begin < 10
    for thread in threads:
        thread.join()


def computing() -> bool:
    """Whether one of this process's servers does."""
    return any(watchdog._runs for watchdog in WATCHDOGS)


WATCHDOGS: list[Watchdog] = []


@pytest.fixture(scope="module", autouse=True)
def watchdogs() -> Iterator[None]:
    made = Watchdog.__init__

    def noted(watchdog: Watchdog, memory: int) -> None:
        made(watchdog, memory)
        WATCHDOGS.append(watchdog)

    Watchdog.__init__ = noted  # type: ignore[method-assign]
    yield
    Watchdog.__init__ = made  # type: ignore[method-assign]


def test_more_statements_than_may_wait(stored: Stored) -> None:
    root = Path(stored.place.storage.root)
    with serving(root, limits=Limits(seconds=3, at_once=1, waiting=1)) as served:
        found: list[int] = []
        threads = [threading.Thread(target=lambda: found.append(ask(served, FOREVER).status_code)) for _ in range(4)]
        for thread in threads:
            thread.start()
            time.sleep(0.2)
        with (
            psycopg.connect(f"host=127.0.0.1 port={served.wire} user=u dbname=dd") as connection,
            pytest.raises(psycopg.errors.TooManyConnections),
        ):
            connection.execute("select 1")
        with httpx.stream("GET", f"{served.url}/collections/kept/changes", timeout=5) as answer:
            assert next(answer.iter_text())
        for thread in threads:
            thread.join()
        assert sorted(found) == [408, 408, 503, 503]


FETCHES = [
    ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}, "/collections", 403),
    ({"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"}, "/assets/vega.js", 403),
    ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}, "/", 403),
    (
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
        "/collections/kept/rows",
        403,
    ),
    ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, "/", 200),
    ({"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, "/collections", 200),
    ({"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}, "/collections", 200),
    ({"origin": "http://evil.example", "sec-fetch-site": "cross-site"}, "/collections", 403),
    ({"origin": "http://[::1"}, "/collections", 403),
    ({"host": "[::1"}, "/collections", 400),
    ({"host": "127.0.0.1:port"}, "/collections", 400),
    ({"host": "evil.example"}, "/collections", 403),
]


@pytest.mark.parametrize(("headers", "path", "status"), FETCHES)
def test_pages_of_other_sites(served: Served, headers: dict[str, str], path: str, status: int) -> None:
    assert httpx.get(f"{served.url}{path}", headers=headers).status_code == status


def test_bodies_are_bounded(served: Served) -> None:
    assert ask(served, "x" * (2 << 20)).status_code == 413

    def parts() -> Iterator[bytes]:
        for _ in range(40):
            yield b"x" * 100_000

    with contextlib.suppress(httpx.HTTPError):
        headers = {"content-type": "application/json"}
        assert httpx.post(f"{served.url}/sql", content=parts(), headers=headers).status_code in (400, 413)
    assert ask(served, "select 1 as x").json()["rows"] == [{"x": 1}]


NASTY = [
    *(
        "",
        " ",
        "0",
        "-1",
        "1e400",
        "nan",
        "inf",
        "-0",
        "99999999999999999999",
        "9" * 5000,
        "1.5",
        "0x10",
        "\uff11" * 9,
    ),
    *("null", "true", "[]", "{}", "\x00", "a\x00b", "%", "%00", "\ud800".encode("utf-8", "surrogatepass"), b"\xff\xfe"),
    *(
        "../../etc/passwd",
        "..",
        "a/b",
        "'",
        '"',
        "';--",
        "/*",
        "--",
        "$1",
        "?",
        "x" * 5000,
        "💣" * 50,
        "\u202e",
        "\r\n",
    ),
    *("0001-01-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "10000-01-01", "2024-02-30", "T", "Z"),
    *(
        "2024-05-01T12:00:00+99:00",
        "1969-12-31",
        "(" * 3000,
        "select 1",
        "k; select 1",
        "k from kept; --",
        "k) or (1=1",
    ),
]
PLACES = [
    ("/collections/kept/rows", "as_of"),
    ("/collections/kept/rows", "limit"),
    ("/collections/kept/rows", "select"),
    ("/collections/kept/rows", "where"),
    ("/collections/kept/rows", "k"),
    ("/collections/kept/rows", "v"),
    ("/collections/kept/rows", "token"),
    ("/collections/kept/changes", "as_of"),
    ("/collections/kept/changes", "up_to"),
    ("/collections/kept/changes", "snapshot"),
    ("/collections/kept/changes", "progress"),
    ("/collections/kept/changes", "select"),
    ("/collections/kept/changes", "where"),
    ("/collections/kept/changes", "key"),
    ("/frontiers", "x"),
    ("/collections", "x"),
]


CLIENT = httpx.Client(timeout=20)
"""One for all requests: a client of its own takes longer to make than the request."""


def status(served: Served, path: str, headers: dict[str, bytes] | None = None, **query: Any) -> int:
    with CLIENT.stream("GET", f"{served.url}{path}", params=query, headers=headers) as answer:
        if answer.status_code >= 400:
            assert "error" in json.loads(answer.read()), answer.read()
        elif "json" in answer.headers["content-type"]:
            json.loads(answer.read())
        return answer.status_code


@pytest.mark.parametrize(("path", "name"), PLACES)
def test_no_parameter_is_an_error_of_the_server(served: Served, path: str, name: str) -> None:
    for value in NASTY:
        assert status(served, path, **{name: value}) < 500, value


def test_no_name_no_header_and_no_body_is_one(served: Served) -> None:
    for value in NASTY:
        data = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
        name = "".join(f"%{byte:02x}" for byte in data[:600])
        for path in (f"/collections/{name}", f"/collections/{name}/rows", f"/collections/{name}/changes", f"/{name}"):
            answer = CLIENT.get(f"{served.url}{path}")
            assert answer.status_code < 500, (path, answer.text)
        plain = bytes(byte for byte in data if byte not in b"\r\n\x00").strip()[:2000]
        for header in ("last-event-id", "origin", "authorization", "cookie", "sec-fetch-site", "accept"):
            assert status(served, "/collections/kept/changes", {header: plain}, up_to=32) < 500, (header, value)
        for body in (data, json.dumps({"statement": value if isinstance(value, str) else "\ud800"}).encode()):
            headers = {"content-type": "application/json"}
            assert CLIENT.post(f"{served.url}/sql", content=body, headers=headers).status_code < 500, value
    for body in (b'{"statement": "select \\ud800"}', b'{"statement": 1}', b"[", b"[" * 100_000, b'{"statement": null}'):
        answer = CLIENT.post(f"{served.url}/sql", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 400 and answer.json()["error"], body[:50]
    for query in ({"limit": "99999999999999999999"}, {"as_of": "99999999999999999999"}, {"limit": 0}):
        assert ask(served, "select 1", **query).status_code == 400


FAR = "date '20000-01-01' as d, timestamp '20000-01-01 12:00:00' as t, date '0044-03-15 (BC)' as b, "
FAR += "timestamptz '100000-01-01 00:00:00.5+00' as z, 'infinity'::date as i, [date '20000-01-01'] as l, "
FAR += "{'x': timestamp '-infinity'} as s, date '2024-05-01' as n, map {1: date '20000-01-01'} as m"


def test_dates_that_python_has_not(served: Served, wire: psycopg.Connection[Any]) -> None:
    (row,) = ask(served, f"select {FAR}").json()["rows"]
    assert row == {
        **{"d": "+020000-01-01", "t": "+020000-01-01T12:00:00", "b": "-000043-03-15", "i": "infinity"},
        **{"z": "+100000-01-01T00:00:00.500000Z", "l": ["+020000-01-01"], "s": {"x": "-infinity"}},
        **{"n": "2024-05-01", "m": [[1, "+020000-01-01"]]},
    }
    with wire.cursor().copy(f"copy (select {FAR}) to stdout (format csv)") as copy:
        told = b"".join(bytes(data) for data in copy).decode()
    assert told.startswith("20000-01-01,20000-01-01 12:00:00,0044-03-15 BC,100000-01-01 00:00:00.5+00,infinity,")
    assert '"+020000-01-01"' in told.replace('""', '"')
    found = wire.pgconn.exec_(f"select {FAR}".encode())
    assert found.get_value(0, 0) == b"20000-01-01" and found.get_value(0, 4) == b"infinity"
    begin = datetime.date(1, 1, 1)
    assert ask(served, "select date '0001-01-01' as d").json()["rows"] == [{"d": begin.isoformat()}]


def test_a_file_that_is_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = Stored(tmp_path / "state")
    stored.commit({10: Counter({(1, "a"): 1})}, 11)
    (file,) = (tmp_path / "state").rglob("*.parquet")
    for damage in (lambda: file.write_bytes(b"no parquet"), lambda: file.unlink()):
        damage()
        for form in ("table", "json", "csv"):
            assert main(["--state-root", str(tmp_path / "state"), "query", "kept", "--format", form]) == 1
            assert file.name in capsys.readouterr().err
    with serving(tmp_path / "state") as served:
        answer = ask(served, "select * from kept")
        assert answer.status_code == 404 and "Traceback" not in answer.text and file.name in answer.text


@pytest.mark.parametrize("text", ["", "much", "-1GB", "0", "nan%", "inf", "1e30GB", "5XB", "1000%%"])
def test_amounts_of_memory(text: str) -> None:
    with pytest.raises(ConfigError, match="memory"):
        parse_memory(text)
    assert parse_memory("1.5GB") == 3 << 29 and parse_memory("512MiB") == 512 << 20
    assert 0 < parse_memory("25%") < 1 << 50


def test_times_out_of_reach(stored: Stored) -> None:
    session = Session(QueryEngine(stored.place.storage))
    for t in ("99999999999999999999", "1e400", "9" * 5000, "'0001-01-01'", "'99999-01-01'", "-5"):
        with pytest.raises((ConfigError, QueryError, FrontierError)):
            session.select(f"select * from kept as of {t}")


def test_the_engine_has_no_other_file_system(stored: Stored) -> None:
    engine = QueryEngine(stored.place.storage)
    list(Session(engine).select("select * from kept").batches)
    connection = engine._connection.cursor()
    below = next(Path(stored.place.storage.root).rglob("*.parquet")).relative_to(stored.place.storage.root)
    assert connection.execute(f"select count(*) from read_parquet('stored://{below}')").fetchall()
    before = written(stored.place.storage.root)
    for path in (
        f"stored://{below}",
        "stored://collections/m.kept/trace/new.parquet",
        f"/{below}",
        "/tmp/x",
        "file:///tmp/x",
    ):
        with pytest.raises(duckdb.Error):
            connection.execute(f"copy (select 1) to '{path}' (format parquet)")
    for path in ("stored://locks/m.kept", "stored://collections/../x.parquet", "stored:///etc/passwd", os.devnull):
        with pytest.raises(duckdb.Error):
            connection.execute(f"select * from read_text('{path}')").fetchall()
    for statement in ("set enable_external_access = true", "set disabled_filesystems = ''", "reset memory_limit"):
        with pytest.raises(duckdb.Error):
            connection.execute(statement)
    assert written(stored.place.storage.root) == before
    assert not ServerOptions().limits.memory
