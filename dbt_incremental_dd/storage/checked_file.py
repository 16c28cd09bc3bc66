"""Small files of this machine that may be lost, but not be wrong: their first bytes are the checksum of the rest."""

from __future__ import annotations

import contextlib
import os
import secrets
import zlib

_DIGITS = 8


def write(path: str, data: bytes) -> None:
    """Replaces the file. Where that fails, there is the former one, or none."""
    made = f"{path}.{secrets.token_hex(8)}"
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(made, "wb") as file:
            file.write(f"{zlib.crc32(data):0{_DIGITS}x}".encode() + data)
        os.replace(made, path)


def read(path: str) -> bytes | None:
    """What was written; None if there is no such file, or it is damaged."""
    try:
        with open(path, "rb") as file:
            checksum, data = file.read(_DIGITS), file.read()
        return data if int(checksum, 16) == zlib.crc32(data) else None
    except (OSError, ValueError):
        return None
