"""Keeps Spark SQL models exactly up to date by computing only what their inputs' changes imply.

dbt imports every top-level module named ``dbt_*`` at start-up, so this module imports nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_incremental_dd.version import version as __version__

if TYPE_CHECKING:
    from dbt_incremental_dd.api import Database


def open(state_root: str, storage_options: dict[str, str] | None = None) -> Database:
    """The collections under ``state_root``; reads logs only, and starts no JVM."""
    from dbt_incremental_dd.api import Database

    return Database(state_root, storage_options)


__all__ = ["__version__", "open"]
