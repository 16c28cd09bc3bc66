"""A browser for each file of tests, and a server for each test that wants one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser import chromium
from tests.serve.pages.again import Server
from tests.serve.pages.watched import Watched


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # No wider: while it runs, this thread has an event loop, and others can run none.
    with chromium() as found:
        yield found


Serve = Callable[..., Server]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Serves collections under the test's folder, with the pages of a folder where one is given."""
    running: list[Server] = []

    def start(pages: Path | None = None) -> Server:
        running.append(Server(tmp_path, pages))
        return running[-1]

    yield start
    for one in running:
        one.stop()


@pytest.fixture
def watched(browser: Browser, serve: Serve) -> Iterator[Watched]:
    # Its pages are closed before the servers end.
    made = Watched(browser)
    yield made
    made.check()
