"""Seeds that need not be loaded: the same file and settings, and a table that nobody has touched since. Of others, what
the engine needs to load them without a session.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dbt.adapters.differential.bindings import text_of

from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.staging import SeedColumn, stage
from dbt_incremental_dd.sources.catalog_table import described, files_in, folder_of
from dbt_incremental_dd.sources.staged_table import (
    LoadedTable,
    key_of,
    loaded_tables,
    note_loaded_table,
    staged_table,
)
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.version import version

_TELLING = ("config", "columns", "description", "relation_name")
"""What a seed's table follows from, beside its file. The manifest's checksum is that of the file as it was parsed."""


def any_loaded(storage: Storage) -> bool:
    """Whether a seed of the project has been loaded."""
    return bool(loaded_tables(storage))


def mark_of(config: Any, seed: Mapping[str, Any]) -> str:
    """Tells apart what would be loaded. Take it before the file is read. ``config``: the project's."""
    told = {key: seed.get(key) for key in _TELLING}
    made = hashlib.sha256(json.dumps([version, told], sort_keys=True, default=str).encode())
    with open(_path(config, seed), "rb") as file:
        made.update(hashlib.file_digest(file, "sha256").digest())
    return made.hexdigest()


def _path(config: Any, seed: Mapping[str, Any]) -> str:
    """Of the file that dbt reads."""
    is_own = seed["package_name"] == config.project_name
    folder = "." if is_own else os.path.join(config.packages_install_path, seed["package_name"])
    path = os.path.join(config.project_root, folder, seed["original_file_path"])
    return path if os.path.exists(path) else os.path.join(str(seed["root_path"]), seed["original_file_path"])


def is_loaded(session: LazySession, storage: Storage, relation: Any, mark: str) -> bool:
    """Whether loading the seed of that mark would change nothing."""
    if not session.memory.follows_catalog:
        return False
    name = relation.render()
    staged = staged_table(session, storage, name)
    if staged is not None:
        return staged.mark == mark
    noted = loaded_tables(storage).get(key_of(name))
    if noted is None or noted.mark != mark or noted.folder is None:
        return False
    if session.is_open:
        is_there = folder_of(described(session.spark, name)) == noted.folder
    else:
        is_there = session.memory.is_table(relation.schema, relation.identifier)
    return is_there and files_in(storage, noted.folder) == noted.files


def note_loaded(session: LazySession, storage: Storage, relation: Any, mark: str) -> None:
    """Notes that Spark has just loaded the seed of that mark."""
    if session.memory.follows_catalog:
        note_loaded_table(session.spark, storage, relation.render(), LoadedTable(mark))


def stage_seed(
    session: LazySession, storage: Storage, relation: str, columns: Sequence[SeedColumn], *, clauses: str, mark: str
) -> bool:
    """Stores the seed's rows, and makes its table of them or leaves it to the next session; False where Spark has to
    load it. Raises what Spark does.

    ``clauses``: what follows the columns in the statement that makes the table.
    """
    declared = ", ".join(f"{column.quoted} {column.type}" for column in columns)
    create = f"CREATE TABLE {relation} ({declared}) {clauses}".strip()
    return stage(session, storage, relation, columns, create=create, mark=mark)


def seed_column(name: str, quoted: str, type: str, values: Iterable[Any]) -> SeedColumn | None:
    """A column of a seed, of values as agate has them; None where the text of a value does not say it."""
    found = list(values)
    if any(isinstance(value, bool) for value in found) and type.strip().lower() != "boolean":
        return None
    return SeedColumn(name, quoted, type, [None if value is None else text_of(value) for value in found])
