"""Errors that keep nothing alive: where a client is cut off in the middle of a batch, the batch goes with it."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator


@contextlib.contextmanager
def cleared_frames() -> Iterator[None]:
    """Clears the frames that an error has left when it leaves this block. They would keep their objects, such as a
    batch, until the next garbage collection, which may be minutes away."""
    try:
        yield
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        raise
