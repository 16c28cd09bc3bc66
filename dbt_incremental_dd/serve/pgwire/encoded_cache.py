"""Rows encoded once for all clients that get the same ones."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import pyarrow as pa

from dbt_incremental_dd.serve.hub import Hub
from dbt_incremental_dd.subscribe.memo import Memo

_MAX_BYTES = 16_000_000
"""Bytes kept for other clients."""
_MAX_INLINE_ROWS = 200
"""Tables of at most this many rows are encoded in the event loop, which is quicker than a thread."""


class EncodedCache:
    """Shared by the connections of one server."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._memo = Memo(_MAX_BYTES)

    async def get(self, table: pa.Table, form: Hashable, make: Callable[[], bytes]) -> bytes:
        """The bytes that ``make`` returns for this table (by identity) in this format."""
        key = id(table), form

        def encode() -> tuple[pa.Table, bytes]:
            # The table is kept, so that no other one can get the same id meanwhile.
            return table, make()

        found = self._memo.find(key)
        if found is None and table.num_rows <= _MAX_INLINE_ROWS:
            found = self._memo.get(key, encode, _size)
        elif found is None:
            found = await self._hub.run(self._memo.get, key, encode, _size)
        encoded: bytes = found[1]
        return encoded


def _size(encode: tuple[pa.Table, bytes]) -> int:
    return int(encode[0].nbytes) + len(encode[1])
