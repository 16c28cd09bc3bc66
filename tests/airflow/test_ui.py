"""The page of collections in a browser, behind Airflow's login, with what the DAGs before have made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.airflow.running import Running
from tests.browser import page

pytestmark = pytest.mark.airflow


def test_the_page_asks_for_a_login(running: Running) -> None:
    airflow = running.airflow
    assert airflow.page("/differential/collections", logged_in=False).status_code == 401
    roots = airflow.page("/differential/collections").json()
    assert [Path(root["state_root"]).parts[-3] for root in roots] == ["flights", "payments"]
    query = "history?state_root=/etc&collection=flights.daily"
    assert airflow.page(f"/differential/{query}").status_code == 404


def test_the_page_in_a_browser(running: Running, tmp_path: Path) -> None:
    airflow, pictures = running.airflow, Path(os.environ.get("PICTURES", tmp_path))
    with page() as shown:
        problems: list[str] = []
        shown.on("pageerror", lambda error: problems.append(str(error)))
        shown.goto(f"{airflow.url}/plugin/differential")
        shown.fill("input[name=username]", "admin")
        shown.fill("input[name=password]", airflow.password)
        shown.keyboard.press("Enter")
        inner = shown.frame_locator("iframe")
        inner.get_by_role("button", name="flights.departures").wait_for()
        shown.goto(f"{airflow.url}/differential/#flights.daily")
        row = shown.locator("tr", has_text="flights.daily")
        row.wait_for()
        assert any(how in row.inner_text() for how in ("delta", "recompute", "initial"))
        shown.locator("#lag path.line").wait_for(state="attached")
        assert shown.locator("#commits tbody tr").count() >= 5
        shown.goto(f"{airflow.url}/differential/#shop.payments")
        shown.locator("h2", has_text="shop.payments").wait_for()
        shown.screenshot(path=pictures / "airflow-collections.png", full_page=True)
        light = shown.evaluate("getComputedStyle(document.body).backgroundColor")
        shown.evaluate("localStorage.setItem('theme', 'dark')")
        shown.goto(f"{airflow.url}/plugin/differential")
        inner.get_by_role("button", name="flights.departures").wait_for()
        shown.screenshot(path=pictures / "airflow-collections-dark.png")
        assert inner.locator("body").evaluate("body => getComputedStyle(body).backgroundColor") != light
        inner.get_by_placeholder("name or kind").fill("payments.")
        assert inner.locator("#collections tbody tr").count() == 4
        assert not problems
