"""Rows that many clients get, as bytes: made once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import pyarrow as pa

from dbt_incremental_dd.serve.hub import Hub
from dbt_incremental_dd.subscribe.memo import Memo

_MAX_BYTES = 16_000_000
"""Bytes that are kept for others."""
_MAX_INLINE_ROWS = 200
"""Rows that are encoded sooner than a thread is asked to."""


class EncodedCache:
    """Belongs to one server."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._memo = Memo(_MAX_BYTES)

    async def get(self, table: pa.Table, form: Hashable, make: Callable[[], bytes]) -> bytes:
        """What ``make`` makes of this very table in this form."""
        key = id(table), form

        def encode() -> tuple[pa.Table, bytes]:
            # The table is kept, so that no other one gets its identity meanwhile.
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
