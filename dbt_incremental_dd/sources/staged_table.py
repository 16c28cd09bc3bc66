"""Tables whose rows are stored before Spark has made them: those of seeds.

The rows are a file in ``seeds/<schema>.<name>/data`` of the state root. It is noted among what the next session has to
make; once the table is there, in ``seeds.json``, with the table's folder and data files. So the table's rows are known
without a session until somebody changes it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa
from pyarrow.fs import FileType

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.relation.due import parts_of
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.sources.catalog_table import described, files_in, folder_of
from dbt_incremental_dd.trace.arrow import arrow_type, parquet_dataset
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.write import DATA, write_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILE = "seeds.json"
_LOCK = threading.Lock()


@dataclass(frozen=True)
class LoadedTable:
    """``mark`` tells apart what was loaded. ``folder`` and ``files``: those of the table; None while it is not there.
    ``staged``: its rows' file below the state root, ``schema`` in JSON; None of a table that Spark has loaded."""

    mark: str
    folder: str | None = None
    files: Mapping[str, Any] | None = None
    staged: str | None = None
    schema: str = ""
    rows: int = 0

    @property
    def columns(self) -> Schema:
        """Those of the staged rows."""
        return Schema.from_json(self.schema)


@dataclass(frozen=True)
class TableToMake:
    """What the next session has to make. ``relation``: its name in SQL; ``create``: what makes it empty."""

    relation: str
    create: str
    loaded: LoadedTable

    @property
    def note(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    @staticmethod
    def of(note: str) -> TableToMake:
        """What the JSON says."""
        told = json.loads(note)
        return TableToMake(told["relation"], told["create"], LoadedTable(**told["loaded"]))


def loaded_tables(storage: Storage) -> dict[str, LoadedTable]:
    """What is noted, by names in lower case without quotes."""
    try:
        found = json.loads(storage.read_small(_FILE) or "{}")
        return {key_of(name): LoadedTable(**noted) for name, noted in found.items()}
    except (ValueError, TypeError, AttributeError):  # of another version
        return {}


def note_loaded_table(spark: SparkSession, storage: Storage, relation: str, loaded: LoadedTable) -> None:
    """Notes how a table that is there was loaded, with its folder and files; nothing of one that has other parts."""
    folder = folder_of(described(spark, relation))
    files = None if folder is None else files_in(storage, folder)
    with _LOCK:
        known = loaded_tables(storage)
        known.pop(key_of(relation), None)
        if files is not None:
            known[key_of(relation)] = replace(loaded, folder=folder, files=files)
        storage.write_small(_FILE, json.dumps({name: asdict(one) for name, one in known.items()}))


def key_of(relation: str) -> str:
    """A relation's name as it is noted."""
    return ".".join(parts_of(relation))


def store_rows(storage: Storage, relation: str, rows: pa.Table, schema: Schema) -> str:
    """Writes the rows of a table that is to be made. Returns their file, as ``LoadedTable.staged`` has it."""
    folder = _folder(relation)
    return f"{folder}/{write_arrow(storage, f'{storage.root}/{folder}', rows, schema).path}"


def remove_others(storage: Storage, relation: str, staged: str) -> None:
    """Deletes files of other loads of the table."""
    filesystem, folder = storage.filesystem(f"{storage.root}/{_folder(relation)}/{DATA}")
    for name in storage.list_names(f"{storage.root}/{_folder(relation)}/{DATA}"):
        if name != staged.rsplit("/", 1)[-1]:
            with suppress(OSError):  # whoever is first
                filesystem.delete_file(f"{folder}/{name}")


def _folder(relation: str) -> str:
    return f"seeds/{quote(key_of(relation), safe='.-_').replace('%', '~')}"


def staged_table(session: LazySession, storage: Storage, relation: str) -> LoadedTable | None:
    """The table, if its rows are certain to be those that are staged, which is told without a session: the next
    session has to make it yet, or nobody has opened the catalog since it was made, nor changed the table's files."""
    memory, parts = session.memory, parts_of(relation)
    if session.is_open or memory.due is None or len(parts) != 2:
        return None
    note = memory.due.tables.get(key_of(relation))
    if note is not None:
        found = TableToMake.of(note).loaded
        return found if _has_rows(storage, found) else None
    known = loaded_tables(storage).get(key_of(relation)) if memory.is_table(*parts) else None
    if known is None or known.staged is None or known.folder is None:
        return None
    return known if files_in(storage, known.folder) == known.files and _has_rows(storage, known) else None


def _has_rows(storage: Storage, loaded: LoadedTable) -> bool:
    filesystem, path = storage.filesystem(f"{storage.root}/{loaded.staged}")
    return bool(filesystem.get_file_info(path).type == FileType.File)


def staged_rows(storage: Storage, loaded: LoadedTable) -> pa.Table:
    """The rows. Raises OSError where their file is gone."""
    filesystem, path = storage.filesystem(f"{storage.root}/{loaded.staged}")
    columns = pa.schema([(column.name, arrow_type(column.type)) for column in loaded.columns])
    return parquet_dataset([path], filesystem, columns).to_table()
