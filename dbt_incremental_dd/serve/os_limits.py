"""The operating system's limits on sockets and open files."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable

BACKLOG = 4_096
"""Connections that may wait to be accepted; the system may allow fewer."""
_FEW_FILES = 4_096
"""Open files that suffice for a thousand clients, each of which needs one."""
_DEFAULT_FILES = 65_536
"""Requested if the hard limit is infinite."""
_MAX_UNSENT_BYTES = 131_072
"""Unsent bytes that the system buffers for one client."""


def limit_unsent_bytes(listening: socket.socket, seconds: float) -> None:
    """Sets socket options that accepted connections inherit, as far as the system has them: unread output stays in this
    process, where it is bounded, and a client that reads nothing for twice ``seconds``, or is gone, is disconnected
    even if there is nothing more to send."""
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _MAX_UNSENT_BYTES)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 2_000))


def raise_open_file_limit(report: Callable[[str], None]) -> None:
    """Raises the limit of open files, and so of connections, to what the system allows this process. Reports a low
    limit."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = _DEFAULT_FILES if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < target:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
            soft = target
        except (ValueError, OSError):  # some systems allow less than their hard limit
            pass
    if soft != resource.RLIM_INFINITY and soft < _FEW_FILES:
        report(
            f"Only {soft} files may be open, and each client takes one: raise the limit (ulimit -Hn) for more clients."
        )
