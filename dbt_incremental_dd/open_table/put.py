"""Writes small files of open tables, before the commit that names them."""

from __future__ import annotations

import os

from dbt_incremental_dd.storage import durable, uploads
from dbt_incremental_dd.storage.objects import objects_of
from dbt_incremental_dd.trace.layout import Storage


def put(storage: Storage, uri: str, data: bytes) -> None:
    """Writes a new file; into object storage in the background, awaited by ``uploads.settle``. ``durable.settle`` syncs
    it. Raises OSError."""
    if not storage.is_local:
        objects, key = objects_of(uri, storage.options)
        uploads.later(uri, lambda: objects.write(key, data))
        return
    os.makedirs(os.path.dirname(uri), exist_ok=True)
    with open(uri, "wb") as file:
        file.write(data)
    durable.note(uri)
