"""The HTTP server: rows, changes as they come, and what it does with clients that are wrong."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import LONG
from dbt_incremental_dd.serve.server import ServerOptions, bind
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.holds import holds
from tests.serve.serving import Served, serving
from tests.subscribe.stored import Rows, Stored


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    made = Stored(tmp_path / "state")
    made.commit({10: Counter({(1, "a"): 1, (2, "b"): 2})}, 11)
    made.commit({20: Counter({(3, None): 1, (2, "b"): -1})}, 31)
    return made


@pytest.fixture
def served(stored: Stored) -> Iterator[Served]:
    with serving(Path(stored.place.storage.root)) as found:
        yield found


@contextmanager
def follow(served: Served, query: str = "", name: str = "m.kept") -> Iterator[ClientConnection]:
    with connect(served.socket(f"/collections/{name}/changes{query}"), open_timeout=20) as web:
        yield web


def told(web: ClientConnection) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(web.recv(timeout=20))
    return found


def events(
    served: Served, query: str = "", headers: dict[str, str] | None = None, most: int = 3
) -> list[dict[str, str]]:
    """The first events of a stream."""
    found: list[dict[str, str]] = []
    url = f"{served.url}/collections/kept/changes{query}"
    with httpx.stream("GET", url, headers=headers or {}, timeout=20) as answer:
        assert answer.status_code == 200, answer.read()
        event: dict[str, str] = {}
        for line in answer.iter_lines():
            if line:
                name, _, value = line.partition(": ")
                event[name] = value
                continue
            if event.keys() & {"data", "id", "event"}:
                found.append(event)
            event = {}
            if len(found) == most:
                break
    return found


def test_collections_and_their_rows(served: Served) -> None:
    (kept,) = httpx.get(f"{served.url}/collections").json()
    assert (kept["name"], kept["at"], kept["followers"]) == ("m.kept", 30, 0)
    assert kept["columns"] == [{"name": "k", "type": "long"}, {"name": "v", "type": "string"}]
    assert httpx.get(f"{served.url}/collections/kept").json()["name"] == "m.kept"
    rows = httpx.get(f"{served.url}/collections/m.kept/rows").json()
    assert rows["as_of"] == 30 and not rows["more"]
    assert sorted(rows["rows"], key=str) == [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}, {"k": 3, "v": None}]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"k": "2"}, [{"k": 2, "v": "b"}]),
        ({"k": "2", "v": "a"}, []),
        ({"where": "v is null or k = 1", "select": "k * 2 as n"}, [{"n": 2}, {"n": 6}]),
        ({"where": "k < 3 -- comment", "v": "b", "select": "v -- comment"}, [{"v": "b"}]),
        ({"as_of": "1970-01-01T00:00:00.015Z", "k": "2"}, [{"k": 2, "v": "b"}, {"k": 2, "v": "b"}]),
    ],
)
def test_some_rows(served: Served, query: dict[str, str], found: list[dict[str, Any]]) -> None:
    answer = httpx.get(f"{served.url}/collections/kept/rows", params=query).json()
    assert sorted(answer["rows"], key=str) == found


def test_more_rows_than_asked_for(served: Served) -> None:
    answer = httpx.get(f"{served.url}/collections/kept/rows", params={"limit": 2}).json()
    assert len(answer["rows"]) == 2 and answer["more"]
    assert not httpx.get(f"{served.url}/collections/kept/rows", params={"limit": 3}).json()["more"]


def test_sql(served: Served) -> None:
    def ask(statement: str, **params: str) -> httpx.Response:
        return httpx.post(f"{served.url}/sql", params=params, json={"statement": statement})

    assert ask("select count(*) as n, sum(k) as s from kept").json()["rows"] == [{"n": 3, "s": 6}]
    assert ask("select count(*) as n from kept as of 15").json() | {} == {
        "as_of": 15, "columns": ["n"], "rows": [{"n": 3}], "more": False,
    }  # fmt: skip
    assert ask("select count(*) as n from kept", as_of="1970-01-01T00:00:00.005Z").json()["rows"] == [{"n": 0}]
    assert ask("drop table kept").status_code == 400
    assert "only SELECT" in ask("drop table kept").json()["error"]


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/collections/nosuch/rows", 404, "m.kept"),
        ("/collections/nosuch/changes", 404, "m.kept"),
        ("/collections/kept/rows?nosuch=1", 400, "no column nosuch"),
        ("/collections/kept/rows?where=nosuch>1", 400, "nosuch"),
        ("/collections/kept/rows?where=1);select 1--", 400, "syntax"),
        ("/collections/kept/rows?as_of=later", 400, "is not a time"),
        ("/collections/kept/rows?as_of=2999-01-01", 410, "final only up to"),
        ("/collections/kept/rows?limit=0", 400, "greater"),
        ("/collections/kept/changes?where=random()>k", 400, "random"),
        ("/collections/kept/changes?select=count(*)", 400, "aggregates"),
        ("/collections/kept/changes?key=nosuch", 400, "nosuch"),
        ("/collections/kept/changes?as_of=1970-01-01&up_to=1970-01-01", 400, "cannot end"),
        ("/collections/kept/changes?snapshot=perhaps", 400, "bool"),
        ("/nosuch", 404, ""),
    ],
)
def test_what_is_wrong_is_told(served: Served, path: str, status: int, said: str) -> None:
    answer = httpx.get(served.url + path)
    assert answer.status_code == status and said in answer.text


def test_a_stream_of_events(served: Served, stored: Stored) -> None:
    threading.Timer(0.5, lambda: stored.commit({40: Counter({(1, "a"): -1, (4, "d"): 2})}, 51)).start()
    snapshot, change = (one for one in events(served, most=2) if "data" in one)
    first = json.loads(snapshot["data"])
    assert (first["timestamp"], first["snapshot"], len(first["inserted"])) == (30, True, 3) and snapshot["id"] == "30"
    assert json.loads(change["data"]) == {
        "timestamp": 40, "inserted": [{"k": 4, "v": "d"}] * 2, "deleted": [{"k": 1, "v": "a"}],
    }  # fmt: skip


def test_a_stream_that_broke_off_goes_on(served: Served, stored: Stored) -> None:
    again = events(served, headers={"Last-Event-ID": "10"}, most=2)
    assert json.loads(again[0]["data"])["timestamp"] == 20 and again[1] == {"id": "30"}
    stored.forget(25)
    anew = json.loads(events(served, headers={"Last-Event-ID": "10"}, most=1)[0]["data"])
    assert anew["snapshot"] and anew["timestamp"] == 30
    assert httpx.get(f"{served.url}/collections/kept/changes?as_of=1970-01-01T00:00:00.01Z").status_code == 410


def test_progress_and_the_end(served: Served) -> None:
    found = events(served, "?as_of=1970-01-01T00:00:00.015Z&up_to=1970-01-01T00:00:00.025Z&progress=true", most=5)
    assert [one.get("event") or json.loads(one["data"]).get("timestamp") for one in found] == [15, 16, 20, 25, "ended"]


def test_a_socket(served: Served, stored: Stored) -> None:
    with follow(served, "?where=k<>2&select=v") as web:
        assert told(web)["inserted"] in ([{"v": "a"}, {"v": None}], [{"v": None}, {"v": "a"}])
        stored.commit({40: Counter({(2, "b"): -1})}, 41)
        stored.commit({50: Counter({(1, "a"): -1})}, 51)
        assert told(web) == {"timestamp": 50, "inserted": [], "deleted": [{"v": "a"}]}
        assert httpx.get(f"{served.url}/collections/kept").json()["followers"] == 1
        (hold,) = holds(stored.place.storage)["m.kept"]
        assert "subscription" in hold.by
    with follow(served, "?key=k&as_of=1970-01-01T00:00:00.04Z&snapshot=false") as web:
        assert told(web) == {"timestamp": 50, "upserted": [], "deleted": [{"k": 1, "v": None}]}


@pytest.mark.parametrize(
    ("query", "said"),
    [("?as_of=2000-01-01&up_to=1999-01-01", "cannot end"), ("?where=now()>v", "now"), ("?select=nosuch", "nosuch")],
)
def test_what_is_wrong_is_told_to_that_socket_alone(served: Served, stored: Stored, query: str, said: str) -> None:
    with follow(served) as good:
        told(good)
        with follow(served, query) as bad:
            assert said in told(bad)["error"]
            with pytest.raises(ConnectionClosed) as closed:
                bad.recv(timeout=20)
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 4400
        with follow(served, name="nosuch") as bad:
            assert "m.kept" in told(bad)["remedy"]
        with follow(served) as bad:
            told(bad)
            bad.send("what is this?")
            assert "accepts no messages" in told(bad)["error"]
        stored.commit({40: Counter({(9, "z"): 1})}, 41)
        assert told(good)["inserted"] == [{"k": 9, "v": "z"}]


def test_a_client_that_reads_nothing_holds_up_nobody(tmp_path: Path) -> None:
    stored = Stored(tmp_path)
    many: Rows = Counter({(k, "x" * 100): 1 for k in range(30_000)})
    stored.commit({10: many}, 11)
    with serving(tmp_path) as served, socket.create_connection(("127.0.0.1", served.port)) as mute:
        mute.sendall(b"GET /collections/kept/changes HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        time.sleep(0.5)
        with follow(served) as web:
            rows = 0
            while (message := told(web)).get("more"):
                rows += len(message["inserted"])
            assert rows + len(message["inserted"]) == 30_000
            began = time.monotonic()
            for t in range(20, 220, 10):
                stored.commit({t: Counter({(0, str(t)): 1})}, t + 1)
            while told(web)["timestamp"] < 210:
                pass
            assert time.monotonic() - began < 20
        assert httpx.get(f"{served.url}/collections/kept/rows?k=7", timeout=20).json()["rows"]


def test_the_token(stored: Stored) -> None:
    with serving(Path(stored.place.storage.root), token="a secret") as served:
        url = f"{served.url}/collections/kept"
        assert httpx.get(url).status_code == 401
        assert httpx.get(url, headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert httpx.get(url, headers={"Authorization": "Bearer a secret"}).status_code == 200
        with httpx.Client() as browser:
            assert browser.get(url, params={"token": "a secret"}).status_code == 200
            assert browser.cookies["dbt_dd_token"] == "a%20secret"
        with follow(served) as web:
            assert "token" in told(web)["error"]
        with follow(served, "?token=a%20secret") as web:
            assert told(web)["snapshot"]
        assert "secret" not in httpx.get(url).text


def test_the_postgres_protocol_beside_it(stored: Stored) -> None:
    with serving(Path(stored.place.storage.root), token="a secret") as served:
        dsn = f"host=127.0.0.1 port={served.wire} user=me dbname=dd"
        with psycopg.connect(dsn, password="a secret") as connection:
            assert connection.execute("select count(*) from kept").fetchall() == [(3,)]
            with connection.cursor() as cursor:
                cursor.execute("declare c cursor for subscribe kept with (snapshot = false)")
                stored.commit({40: Counter({(9, "z"): 1})}, 41)
                assert cursor.execute("fetch 1 c").fetchall() == [(40, 1, 9, "z")]
            assert httpx.get(f"{served.url}/collections/kept?token=a secret").json()["followers"] == 1
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(dsn, password="wrong")


def test_a_name_with_dots(stored: Stored) -> None:
    place = stored.place.storage.collection("a.b.c")
    schema = Schema((Column("k", LONG), TIME_COLUMN, DIFF_COLUMN))
    place.create(schema).commit(Commit(upper=31))
    with serving(Path(stored.place.storage.root)) as served:
        assert httpx.get(f"{served.url}/collections/a.b.c/rows").json()["rows"] == []
        with follow(served, "?where=k>1", "a.b.c") as web:
            assert told(web)["snapshot"]


def test_pages_of_other_sites_read_nothing(served: Served) -> None:
    assert httpx.get(f"{served.url}/collections", headers={"Origin": "http://evil.example"}).status_code == 403
    assert httpx.get(f"{served.url}/collections", headers={"Host": "evil.example"}).status_code == 403
    assert httpx.get(f"{served.url}/collections", headers={"Origin": served.url}).status_code == 200
    url = served.socket("/collections/kept/changes")
    with connect(url, origin="http://evil.example") as web:  # type: ignore[arg-type]
        assert "evil.example" in told(web)["error"]


def test_frontiers(served: Served, stored: Stored) -> None:
    found = []
    with httpx.stream("GET", f"{served.url}/frontiers", timeout=20) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                found.append(json.loads(line[6:]))
                if len(found) == 1:
                    stored.commit({40: Counter({(9, "z"): 1})}, 41)
                elif len(found) == 2:
                    stored.place.remove()
                else:
                    break
    assert [[one["at"] for one in each["collections"]] for each in found] == [[30], [40], []]
    assert found[2]["gone"] == ["m.kept"]


def test_the_description(served: Served) -> None:
    assert "/collections/{name}/changes" in httpx.get(f"{served.url}/openapi.json").json()["paths"]
    page = httpx.get(f"{served.url}/docs").text
    assert "swagger" in page and "http" not in page.replace("http://www.w3.org", "")


def test_where_it_cannot_listen() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="nothing can listen"):
            bind("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(ConfigError, match="nothing can listen"):
        bind("nosuch.invalid", 0)
    for wrong in ({"host": "0.0.0.0"}, {"token": " "}, {"pages": Path("/nosuch")}):
        with pytest.raises(ConfigError):
            ServerOptions(**wrong)  # type: ignore[arg-type]
