"""The page that the documentation gives is one, and works."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

from playwright.sync_api import Page

from tests.serve.pages.conftest import Serve
from tests.serve.pages.watched import Watched, eventually
from tests.serve.pages.written import Written

DOCS = Path(__file__).parents[3] / "docs" / "following.md"


def test_a_page_of_your_own(watched: Watched, serve: Serve, tmp_path: Path) -> None:
    (recipe,) = re.findall(r"```html\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert len(recipe.splitlines()) <= 36
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "spend.html").write_text(recipe)
    spend = Written(tmp_path, "analytics.spend", {"customer": "string", "spend": "decimal(12,2)"})
    spend.become([(f"customer {number}", Decimal(number) / 4) for number in range(20)])
    page = watched.open(f"{serve(pages).url}/spend.html")
    eventually(page, lambda: shown(page), [[f"customer {n}", f"{n / 4:.2f}"] for n in range(19, 9, -1)])
    spend.change({("customer 19", Decimal("4.75")): -1, ("ann", Decimal("1000.50")): 1})
    lines = [["ann", "1000.50"], *([f"customer {n}", f"{n / 4:.2f}"] for n in range(18, 9, -1))]
    eventually(page, lambda: shown(page), lines)


def shown(page: Page) -> list[list[str]]:
    return [line.split("\t") for line in page.locator("#rows tr").all_inner_texts()]
