"""Seeds that need not be loaded: the same file and settings, and a table that nobody has touched since.

What was loaded is noted in ``seeds.json`` in the state root: of each table the seed's mark, and its folder and files.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from typing import Any

from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.sources.catalog_table import described, files_in, folder_of
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.version import version

_FILE = "seeds.json"
_TELLING = ("checksum", "config", "columns", "description", "relation_name")
"""What a seed's table follows from."""
_LOCK = threading.Lock()


def any_loaded(storage: Storage) -> bool:
    """Whether a seed of the project has been loaded."""
    return bool(_noted(storage))


def is_loaded(session: LazySession, storage: Storage, relation: Any, seed: Mapping[str, Any]) -> bool:
    """Whether loading the seed would change nothing."""
    if not session.memory.follows_catalog:
        return False
    mark, noted = _mark(seed), _noted(storage).get(relation.render())
    if mark is None or noted is None or noted["mark"] != mark:
        return False
    if session.is_open:
        is_there = folder_of(described(session.spark, relation.render())) == noted["folder"]
    else:
        is_there = session.memory.is_table(relation.schema, relation.identifier)
    return is_there and files_in(storage, noted["folder"]) == noted["files"]


def note_loaded(session: LazySession, storage: Storage, relation: Any, seed: Mapping[str, Any]) -> None:
    """Notes that the seed has just been loaded."""
    if not session.memory.follows_catalog:
        return
    name, mark = relation.render(), _mark(seed)
    folder = folder_of(described(session.spark, name))
    files = None if folder is None else files_in(storage, folder)
    with _LOCK:
        known = _noted(storage)
        known.pop(name, None)
        if mark is not None and files is not None:
            known[name] = {"mark": mark, "folder": folder, "files": files}
        storage.write_small(_FILE, json.dumps(known))


def _mark(seed: Mapping[str, Any]) -> str | None:
    """Tells apart what would be loaded; None of a file so large that dbt does not look into it."""
    if seed["checksum"]["name"] != "sha256":
        return None
    told = {key: seed.get(key) for key in _TELLING}
    return hashlib.sha256(json.dumps([version, told], sort_keys=True, default=str).encode()).hexdigest()


def _noted(storage: Storage) -> dict[str, Any]:
    try:
        found = json.loads(storage.read_small(_FILE) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
