"""The server's own pages: all collections, and one of them."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.serve.pages.conftest import Serve
from tests.serve.pages.watched import Watched, eventually, overflow, picture
from tests.serve.pages.written import Written


def rows(page: Page) -> list[list[str]]:
    """The table of a collection's rows, without those that are leaving."""
    return page.evaluate(
        """[...document.querySelectorAll("#rows tbody tr:not(.going)")]
           .map((line) => [...line.cells].map((cell) => cell.textContent))"""
    )


def damage(stored: Written) -> None:
    for manifest in Path(stored.place.uri, "manifests").glob("*.json"):
        manifest.write_text("{")


def test_all_collections(watched: Watched, serve: Serve, tmp_path: Path) -> None:
    source = Written(tmp_path, "web.visits", {"url": "string"}, kind="source")
    source.become([("/",)] * 1234)
    model = Written(tmp_path, "site.urls", {"url": "string", "n": "long"}, inputs=["web.visits"])
    model.become([("/", 1234)])
    page = watched.open(serve().url)
    expect(page).to_have_url(re.compile(r"/collections\.html$"))
    expect(page.locator("#state")).to_have_text("live")
    line = page.locator("tr", has_text="urls")
    expect(line).to_contain_text("reads web.visits")
    expect(page.locator("tr", has_text="visits").last).to_contain_text("1,234")
    assert page.locator("h2").all_inner_texts() == ["site", "web"]
    assert page.locator(".badge").all_inner_texts() == ["model", "source"]
    model.become([("/", 1235), ("/new", 1)])
    expect(line).to_contain_text("+2 \u22121")
    Written(tmp_path, "a.new", {"x": "long"}).become([(1,)])
    expect(page.locator("h2:visible").first).to_have_text("a")
    Written(tmp_path, "a.new", {"x": "long"}).place.remove()
    expect(page.locator("h2:visible").first).to_have_text("site")
    broken = Written(tmp_path, "web.broken", {"x": "long"})
    broken.become([(1,)])
    damage(broken)
    told = page.locator("tr", has_text="broken")
    expect(told).to_contain_text("cannot be read")
    expect(told).to_contain_text("--full-refresh")
    page.fill("#filter", "model")
    expect(page.locator("tbody tr:visible")).to_have_count(1)
    page.fill("#filter", "nothing like it")
    expect(page.locator("#empty")).to_have_text("No collection is like that.")
    page.fill("#filter", "")
    picture(page, "collections")
    page.get_by_role("link", name="urls").click()
    expect(page.locator("#name")).to_have_text("site.urls")
    eventually(page, lambda: rows(page), [["/", "1,235", ""], ["/new", "1", ""]])


def test_lags(watched: Watched, serve: Serve, tmp_path: Path) -> None:
    """They are told as time passes, and as sources go on without the model."""
    source = Written(tmp_path, "web.visits", {"url": "string"}, kind="source")
    source.become([("/",)])
    model = Written(tmp_path, "web.urls", {"url": "string"}, inputs=["web.visits"], target_lag=2000)
    model.become([("/",)])
    Written(tmp_path, "web.stg", {"url": "string"}, inputs=["web.visits"], target_lag="downstream").become([("/",)])
    page = watched.open(serve().url)
    lag = page.locator("tr", has_text="urls").locator(".lag")
    expect(lag).to_have_text("lag 0 s of 2 s")
    expect(page.locator("tr", has_text="stg").locator(".lag")).to_have_text("lag 0 s, downstream")
    expect(page.locator("tr", has_text="visits").first.locator(".lag")).to_be_hidden()
    source.become([("/",), ("/new",)])
    expect(lag).to_have_text(re.compile(r"lag 1 s of 2 s"))
    expect(lag).to_have_text(re.compile(r"lag \d s of 2 s, missed since \d\d:\d\d:\d\d"))
    expect(lag).to_have_class("lag missed")
    other = watched.open(f"{serve().url}/collection.html?name=web.urls")
    expect(other.locator("#target-lag")).to_contain_text("of 2 s, missed since")
    model.become([("/",), ("/new",)])
    expect(lag).to_have_text("lag 0 s of 2 s")
    expect(lag).to_have_class("lag")


def test_one_collection(watched: Watched, serve: Serve, tmp_path: Path) -> None:
    stored = Written(tmp_path, "shop.prices", {"item": "string", "price": "long"}, inputs=["shop.items"])
    first = stored.become([("bread", 3), ("milk", 1200), ("milk", 1200), ("tea", 5)])
    page = watched.open(f"{serve().url}/collection.html?name=shop.prices")
    eventually(page, lambda: rows(page), [["bread", "3", ""], ["milk", "1,200", "\u00d72"], ["tea", "5", ""]])
    expect(page.locator("#rows-held")).to_have_text("4")
    expect(page.locator("#inputs a")).to_have_text("shop.items")
    second = stored.become([("bread", 4), ("milk", 1200), ("rice", 2)])
    eventually(page, lambda: rows(page), [["bread", "4", ""], ["milk", "1,200", ""], ["rice", "2", ""]])
    assert page.locator("#rows td.came").all_inner_texts() == ["4"]
    assert page.locator("#rows tr.came td").first.inner_text() == "rice"
    assert page.locator("#rows tr.going td").first.inner_text() == "tea"
    expect(page.locator("#rows tr.going")).to_have_count(0)
    expect(page.locator("#log li .of")).to_contain_text("+2")
    picture(page, "collection")
    page.locator("#rows th button", has_text="price").click()
    assert [row[0] for row in rows(page)] == ["milk", "bread", "rice"]
    # As of an earlier time, which stays as it was while there is more.
    page.goto(f"{page.url}&as_of={first}")
    eventually(page, lambda: [row[0] for row in rows(page)], ["bread", "milk", "tea"])
    third = stored.become([("salt", 1)])
    page.wait_for_timeout(200)
    assert len(rows(page)) == 3
    page.get_by_role("button", name="Now").click()
    eventually(page, lambda: rows(page), [["salt", "1", ""]])
    stored.become([("salt", 2), ("bread", 1)])
    page.locator("#log button").first.wait_for()
    page.focus("#slider")
    page.keyboard.press("Home")
    eventually(page, lambda: [row[0] for row in rows(page)], ["bread", "milk", "tea"])
    assert first < second < third
    page.get_by_role("button", name="Now").click()
    eventually(page, lambda: [row[0] for row in rows(page)], ["bread", "salt"])
    page.locator("#log").get_by_text("Changes appear").wait_for()
    stored.become([("salt", 2)])
    page.locator("#log button").first.click()
    eventually(page, lambda: rows(page), [["salt", "2", ""]])
    expect(page.locator("#live")).to_be_enabled()


def test_a_large_one(watched: Watched, serve: Serve, tmp_path: Path) -> None:
    watched.expected = "status of 400"
    stored = Written(tmp_path, "m.large", {"k": "long", "v": "string"})
    stored.become((k, f"v{k % 3}") for k in range(3000))
    page = watched.open(f"{serve().url}/collection.html?name=m.large")
    expect(page.locator("#count")).to_contain_text("200 of 3,000 rows")
    stored.change({(3000, "new"): 1})
    expect(page.locator("#count")).to_contain_text("3,001")
    expect(page.locator("#log li")).to_contain_text("3,000 new")
    page.fill("#where", "k < 3 OR v = 'new'")
    page.keyboard.press("Enter")
    eventually(page, lambda: [row[0] for row in rows(page)], ["0", "1", "2", "3,000"])
    stored.change({(0, "v0"): -1, (-1, "new"): 1})
    eventually(page, lambda: [row[0] for row in rows(page)], ["-1", "1", "2", "3,000"])
    page.fill("#where", "nothing = 1")
    page.keyboard.press("Enter")
    expect(page.locator("#where-problem")).to_contain_text("nothing")
    stored.change({(-2, "new"): 1})
    eventually(page, lambda: [row[0] for row in rows(page)], ["-2", "-1", "1", "2", "3,000"])
    page.fill("#where", "")
    page.keyboard.press("Enter")
    expect(page.locator("#where-problem")).to_be_hidden()
    expect(page.locator("#count")).to_contain_text("200")


def test_unknown_and_damaged(watched: Watched, serve: Serve, tmp_path: Path) -> None:
    watched.expected = "status of 404"
    broken = Written(tmp_path, "m.broken", {"k": "long"})
    broken.become([(1,)])
    damage(broken)
    server = serve()
    page = watched.open(f"{server.url}/collection.html?name=m.unknown")
    expect(page.locator("#problem")).to_contain_text("no collection m.unknown")
    expect(page.locator("#problem")).to_contain_text("Known collections")
    Written(tmp_path, "m.unknown", {"k": "long"}).become([(7,)])
    eventually(page, lambda: rows(page), [["7", ""]])
    expect(page.locator("#problem")).to_be_hidden()
    page = watched.open(f"{server.url}/collection.html?name=m.broken")
    expect(page.locator("#problem")).to_contain_text("--full-refresh")
    page = watched.open(f"{server.url}/collection.html")
    expect(page.locator("#problem")).to_contain_text("No collection is named")


def test_text_stays_text(watched: Watched, serve: Serve, tmp_path: Path) -> None:
    hostile = [
        '<img src=x onerror="window.hurt=1">',
        "</td><script>window.hurt=1</script>",
        "'\"&amp;",
        "\U0001f600 \u202e",
        "x" * 400,
    ]
    name = "m.<img src=x onerror=hurt=1>'&"
    stored = Written(tmp_path, name, {"<b>k": "string"}, inputs=["<img src=x onerror=window.hurt=1>"])
    stored.become((text,) for text in hostile)
    server = serve()
    page = watched.open(f"{server.url}/collections.html", phone=True)
    page.get_by_role("link", name="<img src=x").click()
    eventually(page, lambda: sorted(row[0] for row in rows(page)), sorted(hostile))
    stored.become((text,) for text in hostile[1:])
    eventually(page, lambda: len(rows(page)), 4)
    expect(page.locator("#log")).to_contain_text("<img src=x")
    assert page.locator("main img").count() == 0 and page.evaluate("window.hurt") is None
    assert page.locator("#rows th").inner_text() == "<b>k"
    assert overflow(page) == 0
