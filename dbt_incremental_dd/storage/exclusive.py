"""Files on a local disk that one of several processes creates, and of which nobody sees a part."""

from __future__ import annotations

import os
import secrets

SCRATCH = ".scratch"
"""How the names of files end that are not complete yet. A process that is killed may leave one."""


def create(path: str, data: bytes, *, mode: int = 0o644, is_synced: bool = False) -> bool:
    """Creates the file, whole or not at all; False if it is there already. ``is_synced``: its contents are on the disk
    before it is visible. Raises OSError, also where the file system has no hard links."""
    folder, name = os.path.split(path)
    scratch = f"{folder}/.{name}-{secrets.token_hex(8)}{SCRATCH}"
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if is_synced:
                file.flush()
                os.fsync(file.fileno())
        os.link(scratch, path)  # unlike a rename it fails where the file is there
    except FileExistsError:
        return False
    finally:
        os.unlink(scratch)
    return True
