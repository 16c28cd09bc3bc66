"""DuckDB's extensions that are installed as Python packages, for programs that know nothing of this project."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def load(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Loads it from its package, ``duckdb-extension-<name>``."""
    spec = importlib.util.find_spec(f"duckdb_extension_{name}")
    assert spec is not None
    assert spec.origin is not None
    (file,) = Path(spec.origin).parent.glob(f"extensions/*/{name}.duckdb_extension")
    connection.execute(f"LOAD '{file}'")
