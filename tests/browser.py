"""A headless Chromium."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The Chromium that is installed; where there is none, CI fails, and others skip the test."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail("There is no Chromium. On Debian: apt-get install chromium")
        pytest.skip("there is no Chromium; on Debian: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=_QUIET)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def page() -> Iterator[Page]:
    """A page of it."""
    with chromium() as browser:
        yield browser.new_page(viewport={"width": 1400, "height": 900})
