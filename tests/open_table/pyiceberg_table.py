"""Iceberg tables as PyIceberg opens them, also in a store."""

from __future__ import annotations

from collections.abc import Mapping

from pyarrow import fs as pafs
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import StaticTable

from dbt_incremental_dd.storage.filesystems import filesystem_of


class StoreIO(PyArrowFileIO):
    """Files of a store by this project's options for it."""

    def _initialize_fs(self, scheme: str, netloc: str | None = None) -> pafs.FileSystem:
        return filesystem_of(f"{scheme}://{netloc}" if netloc else "/", self.properties)[0]


def table_at(uri: str, options: Mapping[str, str]) -> StaticTable:
    """The table in a folder."""
    return StaticTable.from_metadata(uri, {"py-io-impl": f"{__name__}.{StoreIO.__name__}", **options})
