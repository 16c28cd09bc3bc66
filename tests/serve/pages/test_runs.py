"""The page of runs: when they were, by which operators, and what waits for what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from dbt_incremental_dd.core.time import now
from dbt_incremental_dd.runtime.run_log.columns import OPERATORS, RUNS, Row
from dbt_incremental_dd.runtime.run_log.store import Batch, Retention, append
from dbt_incremental_dd.trace.layout import Storage
from tests.serve.pages.conftest import Serve
from tests.serve.pages.watched import Watched, eventually, overflow, picture
from tests.serve.pages.written import Written

KEPT = Retention(1000, 10**10)
COUNTS = dict.fromkeys(("updates_in", "updates_out", "rows_added", "rows_removed", "rows_read", "rows_found"), 3)


def note(root: Path, began: int, model: str = "site.urls", operators: list[Row] | None = None, **more: Any) -> None:
    key = {"model": model, "invocation": f"i{began}", "began": began}
    run = {**key, "ended": began + 400, "strategy": "delta", "seconds": 0.4, "compute_seconds": 0.3, "unchanged": 2}
    sizes = {"lag": 900, "input_lag": 0, "bytes_read": 5000, "rows_written": 4, "bytes_written": 100, **COUNTS}
    storage = Storage(str(root))
    append(
        Batch(storage.collection(RUNS), [{**run, **sizes, **more}], KEPT),
        Batch(storage.collection(OPERATORS), [{**key, **row} for row in operators or ()], KEPT),
    )


def operator(number: int, parent: int | None, detail: str, own: float) -> Row:
    counts = {"calls": 1, "rows_in": 3, "rows_out": None, "rows_read": 7, "rows_found": 1, "bytes_read": 100}
    told = {"operator": detail.split()[0], "detail": detail, "seconds": 1.0, "own_seconds": own}
    return {"number": number, "parent": parent, **told, **counts}


def boxes(page: Page) -> dict[str, tuple[int, int, int]]:
    """Of each frame left, width and top, in percent of the graph's width, and rows."""
    found = page.evaluate(
        """[...document.querySelectorAll("#flame button")].map((one) => [one.textContent,
           parseFloat(one.style.left), parseFloat(one.style.width), parseFloat(one.style.top) / 26])"""
    )
    return {text: (round(left), round(width), round(top)) for text, left, width, top in found}


def test_runs_operators_and_what_waits(watched: Watched, serve: Serve, tmp_path: Path) -> None:
    began = now() - 20_000
    Written(tmp_path, "web.visits", {"url": "string"}, kind="source").become([("/",)], at=began - 600_000)
    Written(tmp_path, "site.pages", {"url": "string"}, inputs=["web.visits"]).become([("/",)], at=began - 600_000)
    Written(tmp_path, "site.urls", {"url": "string"}, inputs=["site.pages"]).become([("/",)], at=began - 600_000)
    plan = [
        operator(0, None, "Map [n]", 0.1),
        operator(1, 0, "Join, delta query", 0.2),
        operator(2, 1, "Get site.pages", 0.6),
        operator(3, 1, "Get <b>web</b>", 0.1),
    ]
    note(tmp_path, began, operators=plan)
    note(tmp_path, began + 5000, model="site.pages", strategy="rebuild", why="its SQL has changed")
    note(tmp_path, began + 9000, strategy="failed", error="its query fails", lag=None, input_lag=None)
    page = watched.open(f"{serve().url}/runs.html")
    expect(page.locator("#state")).to_have_text("live")
    expect(page.locator("#summary")).to_have_text("3 runs of 2 models, 1 failed")
    bars = page.locator("#timeline rect")
    expect(bars).to_have_count(3)
    assert [bar.get_attribute("data-kind") for bar in bars.all()] == ["delta", "built", "failed"]
    expect(page.locator("#why")).to_have_text("its query fails")

    bars.first.click()
    expect(page.locator("#run-head")).to_contain_text("site.urls, delta")
    expect(page.locator("#flame button")).to_have_count(4)
    assert boxes(page) == {
        "Map [n]": (0, 100, 0),
        "Join, delta query": (0, 90, 1),
        "Get site.pages": (0, 60, 2),
        "Get <b>web</b>": (60, 10, 2),
    }
    page.locator("#flame button", has_text="site.pages").click()
    expect(page.locator('#operators tr[aria-selected="true"]')).to_contain_text("Get site.pages")
    expect(page.locator("#run-facts")).to_contain_text("3 in")
    picture(page, "runs")
    bars.first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#run-head")).to_contain_text("site.pages, rebuild")
    expect(page.locator("#timeline rect:focus")).to_have_attribute("data-kind", "built")
    expect(page.locator("#why")).to_have_text("its SQL has changed")

    urls = page.locator('#waits tr[data-model="site.urls"]')
    expect(urls).to_contain_text("site.pages \u2190 web.visits")
    expect(urls).to_contain_text("its query fails")
    note(tmp_path, began + 15_000)
    expect(bars).to_have_count(4)
    expect(page.locator("#run-head")).to_contain_text("site.pages, rebuild")
    page.fill("#filter", "urls")
    expect(page.locator("#summary")).to_have_text("3 runs of 1 model, 1 failed")
    page.reload()
    expect(page.locator("#run-head")).to_contain_text("site.pages, rebuild")
    page.fill("#filter", "no such")
    expect(page.locator("#empty")).to_have_text("No run is like that.")


def test_on_a_phone_and_without_runs(watched: Watched, serve: Serve, tmp_path: Path) -> None:
    watched.expected = "404"
    page = watched.open(f"{serve().url}/runs.html", dark=True, phone=True)
    expect(page.locator("#empty")).to_contain_text("No run is noted yet")
    note(tmp_path, now(), operators=[operator(0, None, "Get " + "x" * 300, 0.1)])
    expect(page.locator("#timeline rect")).to_have_count(1)
    eventually(page, lambda: overflow(page), 0)
    picture(page, "runs-phone")
