"""Seeds that need not be loaded: the same file and settings, and a table that nobody has touched since.

What was loaded is noted in ``seeds.json`` in the state root: of each table the seed's mark, and its folder and files.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from typing import Any

from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.sources.catalog_table import described, files_in, folder_of
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.version import version

_FILE = "seeds.json"
_TELLING = ("config", "columns", "description", "relation_name")
"""What a seed's table follows from, beside its file. The manifest's checksum is that of the file as it was parsed."""
_LOCK = threading.Lock()


def any_loaded(storage: Storage) -> bool:
    """Whether a seed of the project has been loaded."""
    return bool(_noted(storage))


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
    noted = _noted(storage).get(relation.render())
    if noted is None or noted["mark"] != mark:
        return False
    if session.is_open:
        is_there = folder_of(described(session.spark, relation.render())) == noted["folder"]
    else:
        is_there = session.memory.is_table(relation.schema, relation.identifier)
    return is_there and files_in(storage, noted["folder"]) == noted["files"]


def note_loaded(session: LazySession, storage: Storage, relation: Any, mark: str) -> None:
    """Notes that the seed of that mark has just been loaded."""
    if not session.memory.follows_catalog:
        return
    name = relation.render()
    folder = folder_of(described(session.spark, name))
    files = None if folder is None else files_in(storage, folder)
    with _LOCK:
        known = _noted(storage)
        known.pop(name, None)
        if files is not None:
            known[name] = {"mark": mark, "folder": folder, "files": files}
        storage.write_small(_FILE, json.dumps(known))


def _noted(storage: Storage) -> dict[str, Any]:
    try:
        found = json.loads(storage.read_small(_FILE) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
