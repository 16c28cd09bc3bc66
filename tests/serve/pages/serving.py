"""A server of collections in a thread, which can be ended and started again at the same address."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import uvicorn

from dbt_incremental_dd.api import Database
from dbt_incremental_dd.serve.access import Access
from dbt_incremental_dd.serve.http import application
from dbt_incremental_dd.serve.server import bind

LIVE = Path(__file__).parents[3] / "example_project" / "live"


class Serving:
    """``pages``: a folder served before the server's own."""

    def __init__(self, root: Path, pages: Path | None = None) -> None:
        self._root, self._pages, self._port = root, pages, 0
        self.start()

    @property
    def url(self) -> str:
        """Where it is, without a slash at the end."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listens."""
        bound = bind("127.0.0.1", self._port)
        self._port = bound.getsockname()[1]
        app = application(Database(str(self._root)), Access(), self._pages)
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
        self._thread = threading.Thread(target=self._server.run, args=([bound],), daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def stop(self) -> None:
        """Ends, and with it every connection."""
        self._server.should_exit = True
        self._thread.join(10)
        assert not self._thread.is_alive()
