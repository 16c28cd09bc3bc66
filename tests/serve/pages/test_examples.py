"""The pages of the example projects, with what their models would be."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.serve.pages.again import LIVE
from tests.serve.pages.conftest import Serve
from tests.serve.pages.examples import Clickstream, Wikirecent
from tests.serve.pages.watched import Watched, eventually, overflow, picture

PAGES = ("", "wikirecent.html", "clickstream.html", "collections.html", "collection.html?name=wikirecent.editors")


def bars(page: Page, chart: str) -> list[tuple[str, str]]:
    """Names and amounts as the chart draws them, from above; and as it says them."""
    drawn = page.evaluate(
        """(chart) => {
          const texts = (marks) => [...document.querySelectorAll(`${chart} .${marks}_marks text`)]
            .map((text) => [text.getBoundingClientRect().top, text.textContent]);
          return [texts("names"), texts("amounts")].map((all) => all.sort((a, b) => a[0] - b[0]).map(([, text]) => text));
        }""",
        chart,
    )
    said = page.evaluate(
        "(chart) => [...document.querySelectorAll(`${chart} ol li`)].map((line) => line.textContent)", chart
    )
    found = list(zip(*drawn, strict=True))
    return found if said == [f"{name}: {amount}" for name, amount in found] else [("still moving", str(said))]


def grouped(rows: list[tuple[str, int]]) -> list[tuple[str, str]]:
    return [(name, f"{count:,}") for name, count in rows]


def total(wiki: Wikirecent) -> str:
    (row,) = wiki.counter.rows
    return f"{row[0]:,}"


def shown(page: Page) -> Any:
    return page.locator("#edits").inner_text(), bars(page, "#top")


def wanted(wiki: Wikirecent) -> Any:
    return total(wiki), grouped(wiki.top())


@pytest.fixture
def wiki(tmp_path: Path) -> Wikirecent:
    made = Wikirecent(tmp_path)
    made.edit([f"Editor {number}" for number in range(12) for _ in range(100 - 4 * number)])
    return made


def test_edits_as_they_come(watched: Watched, serve: Serve, wiki: Wikirecent) -> None:
    url = f"{serve(LIVE).url}/wikirecent.html"
    page, other = watched.open(url, moving=True), watched.open(url, phone=True)
    eventually(page, lambda: shown(page), wanted(wiki))
    rng = random.Random(3)
    for _ in range(3):
        wiki.edit(f"Editor {rng.randint(0, 11)}" for _ in range(rng.randint(10, 90)))
        for client in (page, other):
            eventually(client, lambda client=client: shown(client), wanted(wiki))
    last = wiki.top()[-1][0]
    wiki.edit(["Newcomer"] * 300)
    eventually(page, lambda: shown(page), wanted(wiki))
    names = [name for name, _ in bars(page, "#top")]
    assert names[0] == "Newcomer" and last not in names and len(names) == 10
    wiki.edit(["-Newcomer"] * 290)
    eventually(page, lambda: shown(page), wanted(wiki))
    assert last in [name for name, _ in bars(page, "#top")]
    expect(page.locator("#state")).to_have_text("live")
    late = watched.open(url)
    eventually(late, lambda: shown(late), wanted(wiki))
    picture(page, "wikirecent")


def test_the_server_is_started_again(watched: Watched, serve: Serve, wiki: Wikirecent) -> None:
    watched.expected = "WebSocket connection|ERR_CONNECTION_REFUSED"
    server = serve(LIVE)
    page = watched.open(f"{server.url}/wikirecent.html")
    eventually(page, lambda: shown(page), wanted(wiki))
    server.stop()
    expect(page.locator("#state")).to_have_text("reconnecting\u2026")
    wiki.edit(["Editor 11"] * 500 + ["-Editor 0"] * 90)
    server.start()
    eventually(page, lambda: shown(page), wanted(wiki))
    expect(page.locator("#state")).to_have_text("live")
    wiki.edit(["Editor 3"] * 40)
    eventually(page, lambda: shown(page), wanted(wiki))


def test_visits(watched: Watched, serve: Serve, tmp_path: Path) -> None:
    clicks, rng = Clickstream(tmp_path), random.Random(5)
    odd = '/it\'s "odd" \\ <b>'

    def visits(count: int) -> list[tuple[int, str, str | None, int]]:
        urls = [odd, *(f"/page/{number}" for number in range(30))]
        devices = ("phone", "desktop", None)
        return [(rng.randint(1, 5), rng.choice(urls), rng.choice(devices), 1000) for _ in range(count)]

    def counts(of: Any, field: int) -> list[tuple[str, str]]:
        found: dict[str, int] = {}
        for row in of:
            found[row[field] or "unknown"] = found.get(row[field] or "unknown", 0) + row[-1]
        return grouped(sorted(found.items(), key=lambda one: (-one[1], one[0])))

    clicks.visit([(9, "/top", "phone", 1000)] * 500 + visits(2000))
    page = watched.open(f"{serve(LIVE).url}/clickstream.html")
    expect(page.locator("#url")).to_have_text("/top")
    expect(page.locator("#user-title")).to_have_text("Visitor 9")
    page.fill("#search", "odd")
    page.locator("#list button").click()
    page.fill("#user", "3")
    page.keyboard.press("Enter")
    for _ in range(3):
        devices = [row[1:] for row in clicks.by_url_device.rows if row[0] == odd]
        eventually(page, lambda devices=devices: bars(page, "#url-devices"), counts(devices, 0))
        own = [row[:4] for row in clicks.by_user.rows if row[0] == 3]
        eventually(page, lambda own=own: bars(page, "#user-devices"), counts(own, 2))
        eventually(page, lambda: bars(page, "#top"), counts([row[:2] for row in clicks.by_url.rows], 0)[:10])
        visited = next(row[1] for row in clicks.by_url.rows if row[0] == odd)
        expect(page.locator("#url-visits")).to_have_text(f"{visited:,}")
        pages = page.evaluate("[...document.querySelectorAll('#user-urls tr')].map((row) => row.cells[0].textContent)")
        assert pages == [name for name, _ in counts(own, 1)[:4]]
        clicks.visit(visits(300))
    page.reload()
    expect(page.locator("#url")).to_have_text(odd)
    expect(page.locator("#user")).to_have_value("3")
    picture(page, "clickstream")


def test_names_stay_text(watched: Watched, serve: Serve, tmp_path: Path) -> None:
    wiki = Wikirecent(tmp_path)
    names = ['<img src=x onerror="window.hurt=1">', 'O\'Brien "&lt;"', "\U0001f600", "w" * 300, "__proto__"]
    wiki.edit(name for i, name in enumerate(names) for _ in range(i + 1))
    page = watched.open(f"{serve(LIVE).url}/wikirecent.html")
    said = [f"{name}: {count}" for name, count in wiki.top()]
    eventually(page, lambda: page.locator("#top ol li").all_text_contents(), said)
    drawn = page.locator("#top .names_marks text")
    eventually(page, lambda: drawn.count(), len(names))
    assert set(names) - {"w" * 300} <= set(drawn.all_text_contents())
    assert page.locator("main img").count() == 0 and page.evaluate("window.hurt") is None
    page.set_viewport_size({"width": 375, "height": 800})
    assert overflow(page) == 0


def test_dark_and_narrow(watched: Watched, serve: Serve, wiki: Wikirecent, tmp_path: Path) -> None:
    Clickstream(tmp_path).visit([(1, "/a/rather/long/path/" + "x" * 80, "phone", 10)] * 5)
    url = serve(LIVE).url
    ground = "getComputedStyle(document.body).backgroundColor"
    for name in PAGES:
        page = watched.open(f"{url}/{name}", dark=True, phone=True)
        expect(page.locator("#state")).to_have_text("live")
        page.wait_for_timeout(100)
        assert overflow(page) == 0, name
        dark = page.evaluate(ground)
        picture(page, f"phone-{PAGES.index(name)}")
    page.get_by_role("button", name="Dark theme").click()
    light = page.evaluate(ground)
    assert dark != light
    page.reload()
    assert page.evaluate(ground) == light
    page.goto(f"{url}/{PAGES[1]}")
    assert page.evaluate(ground) == light
    page.set_viewport_size({"width": 320, "height": 700})
    assert overflow(page) == 0


def test_without_data(watched: Watched, serve: Serve, tmp_path: Path) -> None:
    page = watched.open(f"{serve(LIVE).url}/wikirecent.html")
    expect(page.locator("#problem")).to_contain_text("no collection wikirecent.")
    wiki = Wikirecent(tmp_path)
    wiki.edit(["Editor 1"])
    eventually(page, lambda: shown(page), wanted(wiki))
    expect(page.locator("#problem")).to_be_hidden()
