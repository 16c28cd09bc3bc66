"""Avro files, in which Iceberg lists what a table has."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO, cast

from pyarrow import fs as pafs

from dbt_incremental_dd.core.errors import ConfigError


def read_records(filesystem: pafs.FileSystem, path: str) -> list[dict[str, Any]]:
    """The file's records. Raises OSError or ValueError where it cannot be read, ConfigError without fastavro."""
    reader = _fastavro().reader
    with filesystem.open_input_file(path) as file:
        data = file.read()
    try:
        return list(reader(io.BytesIO(data)))
    except Exception as error:  # of damaged bytes the library's errors are many
        raise ValueError(f"{path} is no Avro file that can be read: {error!r}") from error


def records_as_file(schema: Mapping[str, Any], records: Iterable[Mapping[str, Any]], notes: Mapping[str, str]) -> bytes:
    """A file of records; ``notes``: what its head says besides their schema."""
    made = io.BytesIO()
    _fastavro().writer(cast("BinaryIO", made), schema, records, codec="deflate", metadata=dict(notes))
    return made.getvalue()


def _fastavro() -> Any:
    try:
        import fastavro
    except ImportError as error:
        raise ConfigError(
            "Iceberg's manifests are Avro files, and fastavro is not installed",
            "pip install 'dbt-incremental-dd[lake]'",
        ) from error
    return fastavro
