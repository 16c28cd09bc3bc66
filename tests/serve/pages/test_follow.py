"""`follow.js` holds exactly what a collection holds, whatever happens in between."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.serve.pages.again import Server
from tests.serve.pages.conftest import Serve
from tests.serve.pages.watched import Watched, eventually
from tests.serve.pages.written import Row, Written
from tests.serve.serving import serving

FOLLOW = """async ([name, options]) => {
  const { follow } = await import("/follow.js");
  Object.assign(window, { calls: [], states: [], times: [] });
  options.onState = (told) => states.push(told);
  options.onTime = (t) => times.push(t);
  window.followed = follow(name, options, (told) => calls.push({ ...told, rows: told.rows }));
}"""


@pytest.fixture
def server(serve: Serve, tmp_path: Path) -> Server:
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "blank.html").write_text('<!doctype html><link rel="icon" href="data:,">')
    return serve(folder)


def follow(watched: Watched, server: Server, name: str, **options: Any) -> Page:
    page = watched.open(f"{server.url}/blank.html")
    page.evaluate(FOLLOW, [name, options])
    return page


def held(page: Page) -> Counter[Row]:
    return Counter(tuple(row.values()) for row in page.evaluate("followed.rows"))


def test_duplicates_and_exact_values(watched: Watched, server: Server, tmp_path: Path) -> None:
    big = 2**62 + 1
    stored = Written(tmp_path, "m.kept", {"k": "long", "v": "string"})
    stored.become([(1, "a")] * 3 + [(2, None), (big, "big"), (big + 1, "big")])
    page = follow(watched, server, "m.kept")
    eventually(page, lambda: page.evaluate("calls.length"), 1)
    first = page.evaluate("calls[0]")
    assert first["snapshot"] and len(first["inserted"]) == 6 and first["timestamp"] == stored.at
    assert held(page) == {(1, "a"): 3, (2, None): 1, (str(big), "big"): 1, (str(big + 1), "big"): 1}
    rng = random.Random(1)
    for step in range(2, 10):
        stored.become((rng.randint(0, 4), rng.choice("ab")) for _ in range(12))
        eventually(page, lambda: held(page), stored.rows)
        told = page.evaluate("calls.at(-1)")
        assert told["timestamp"] == stored.at and not told["snapshot"]
        assert page.evaluate("calls.length") == step
    assert page.evaluate("times.at(-1)") == stored.at
    page.evaluate("followed.close()")
    assert page.evaluate("states.map((told) => told.state)") == ["connecting", "live", "closed"]


def test_a_time_is_told_when_it_is_whole(watched: Watched, server: Server, tmp_path: Path) -> None:
    stored = Written(tmp_path, "m.kept", {"k": "long"})
    stored.become((k,) for k in range(5000))
    page = follow(watched, server, "m.kept")
    eventually(page, lambda: page.evaluate("calls.map(({rows}) => rows.length)"), [5000])
    stored.become((k,) for k in range(2500, 9000))
    eventually(page, lambda: page.evaluate("calls.map(({rows}) => rows.length)"), [5000, 6500])
    told = page.evaluate("[calls[1].inserted.length, calls[1].deleted.length]")
    assert told == [4000, 2500] and held(page) == stored.rows


def test_part_of_it_by_key_and_changes_alone(watched: Watched, server: Server, tmp_path: Path) -> None:
    stored = Written(tmp_path, "m.kept", {"k": "long", "v": "string"})
    stored.become([(1, "it's"), (2, "b"), (3, "c")])
    by_key = follow(watched, server, "m.kept", key="k")
    some = follow(watched, server, "m.kept", where="v = 'it''s'", select="k + 1 AS next, v")
    changes = follow(watched, server, "m.kept", snapshot=False)
    eventually(some, lambda: held(some), {(2, "it's"): 1})
    eventually(by_key, lambda: held(by_key), stored.rows)
    eventually(changes, lambda: changes.evaluate("followed.state"), "live")
    stored.become([(1, "it's"), (2, "B"), (4, "it's")])
    eventually(some, lambda: held(some), {(2, "it's"): 1, (5, "it's"): 1})
    eventually(by_key, lambda: held(by_key), stored.rows)
    told = by_key.evaluate("calls.at(-1)")
    assert sorted(row["v"] for row in told["deleted"]) == ["b", "c"]
    eventually(changes, lambda: changes.evaluate("calls.map((told) => told.inserted.length)"), [2])
    assert held(changes) == {}
    stored.become([(1, "one"), (1, "other")])
    eventually(by_key, lambda: by_key.evaluate("calls.at(-1).violations.map((row) => row.k)"), [1])
    assert held(by_key) == {}


def test_a_server_that_comes_back(watched: Watched, server: Server, tmp_path: Path) -> None:
    watched.expected = "WebSocket connection"
    stored = Written(tmp_path, "m.kept", {"k": "long"})
    stored.become([(1,), (2,)])
    page = follow(watched, server, "m.kept")
    eventually(page, lambda: held(page), stored.rows)
    server.stop()
    eventually(page, lambda: page.evaluate("followed.state"), "reconnecting")
    stored.become([(2,), (3,)])
    server.start()
    eventually(page, lambda: held(page), stored.rows)
    assert page.evaluate("[calls.length, calls[1].snapshot, followed.state]") == [2, False, "live"]
    # Where it was is no more: it begins anew, and tells what is different.
    server.stop()
    stored.become([(2,), (4,), (4,)])
    stored.forget(stored.at)
    server.start()
    eventually(page, lambda: held(page), stored.rows)
    told = page.evaluate("calls[2]")
    assert told["snapshot"] and (told["inserted"], told["deleted"]) == ([{"k": 4}, {"k": 4}], [{"k": 3}])
    server.stop()
    server.start()
    eventually(page, lambda: page.evaluate("followed.state"), "live")


def test_a_page_of_another_site(watched: Watched, server: Server, tmp_path: Path) -> None:
    stored = Written(tmp_path, "m.kept", {"k": "long"})
    stored.become([(1,), (2,)])
    with serving(tmp_path, origins=(server.url,)) as other:
        page = watched.open(f"{server.url}/blank.html")
        page.evaluate(FOLLOW.replace("/follow.js", f"{other.url}/follow.js"), ["m.kept", {}])
        eventually(page, lambda: held(page), stored.rows)
        ask = """async (url) => (await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" },
          body: JSON.stringify({ statement: "SELECT count(*) AS n FROM m.kept" }) })).json()"""
        assert page.evaluate(ask, f"{other.url}/sql")["rows"] == [{"n": 2}]
        page.evaluate("followed.close()")


def test_what_the_server_refuses(watched: Watched, server: Server, tmp_path: Path) -> None:
    page = follow(watched, server, "m.later")
    eventually(page, lambda: page.evaluate("followed.state"), "failed")
    assert "no collection m.later" in page.evaluate("states.at(-1).error")
    assert "dbt run" in page.evaluate("states.at(-1).remedy")
    stored = Written(tmp_path, "m.later", {"k": "long"})
    stored.become([(1,)])
    eventually(page, lambda: held(page), stored.rows)
    wrong = follow(watched, server, "m.later", where="nothing = 1")
    eventually(wrong, lambda: wrong.evaluate("followed.state"), "failed")
    assert "nothing" in wrong.evaluate("states.at(-1).error")
