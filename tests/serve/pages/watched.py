"""Pages in a browser of which everything that goes wrong is kept."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page

PHONE = {"width": 375, "height": 812}
WIDE = {"width": 1280, "height": 800}


@dataclass
class Watched:
    """Opens pages. ``expected``: what may be told on their consoles, as a pattern."""

    browser: Browser
    problems: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    expected: str = "(?!)"

    def open(self, url: str, dark: bool = False, phone: bool = False, moving: bool = False) -> Page:
        """A page of a client of its own; ``moving``: of one who wants to see movement."""
        context = self.browser.new_context(
            viewport=PHONE if phone else WIDE,  # type: ignore[arg-type]
            color_scheme="dark" if dark else "light",
            reduced_motion="no-preference" if moving else "reduce",
        )
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda said: self._said(said.type, said.text))
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).hostname or ""))
        page.on("websocket", lambda socket: self.hosts.add(urlsplit(socket.url).hostname or ""))
        page.goto(url)
        return page

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not re.search(self.expected, text):
            self.problems.append(text)

    def check(self) -> None:
        """Nothing went wrong, and no other host was asked for anything."""
        for context in self.browser.contexts:
            context.close()
        assert not self.problems, self.problems
        assert self.hosts - {""} <= {"127.0.0.1"}


def eventually(page: Page, told: Callable[[], Any], wanted: Any, seconds: float = 8) -> None:
    """Fails with the last answer where it does not become what is wanted."""
    deadline = time.monotonic() + seconds
    while (found := told()) != wanted:
        assert time.monotonic() < deadline, f"{found!r} is not {wanted!r}"
        page.wait_for_timeout(30)


def picture(page: Page, name: str) -> None:
    """A screenshot in the folder that PICTURES names, if it names one."""
    if folder := os.environ.get("PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png")


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    return max(int(page.evaluate(wider)), 0)
