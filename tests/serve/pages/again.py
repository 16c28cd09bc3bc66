"""A server of collections that can be ended and started again at the same address."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from tests.serve.serving import serving

LIVE = Path(__file__).parents[3] / "example_project" / "live"


class Server:
    """``pages``: a folder served before the server's own."""

    def __init__(self, root: Path, pages: Path | None = None) -> None:
        self._root, self._pages, self._port = root, pages, 0
        self._running = ExitStack()
        self.start()

    @property
    def url(self) -> str:
        """Where it is, without a slash at the end."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listens."""
        self._port = self._running.enter_context(serving(self._root, pages=self._pages, port=self._port)).port

    def stop(self) -> None:
        """Ends, and with it every connection."""
        self._running.close()
