"""What the operating system lets a server have."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable

BACKLOG = 4_096
"""Connections that may wait to be accepted; the system may allow fewer."""
_FEW_FILES = 4_096
"""Open files with which a server of a thousand clients has enough; each of these takes one."""
_DEFAULT_FILES = 65_536
"""As many as are asked for where there is no limit."""
_MAX_UNSENT_BYTES = 131_072
"""Bytes for one client that the system takes before it can send them."""


def limit_unsent_bytes(listening: socket.socket, seconds: float) -> None:
    """Of all connections to come: what a client does not read waits in this process, where it is bounded and seen; and
    one that takes nothing for twice so many seconds, or is gone, is cut off, also where nobody has more to tell it.
    Does what the system can."""
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _MAX_UNSENT_BYTES)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 2_000))


def raise_open_file_limit(report: Callable[[str], None]) -> None:
    """As many files and connections may be open as the system allows this process. Tells where these are few."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = _DEFAULT_FILES if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < target:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
            soft = target
        except (ValueError, OSError):  # some systems allow less than they say
            pass
    if soft != resource.RLIM_INFINITY and soft < _FEW_FILES:
        report(
            f"Only {soft} files may be open, and each client takes one: raise the limit (ulimit -Hn) for more clients."
        )
