"""What import-linter cannot see: the adapter is also installed under dbt's own name."""

from __future__ import annotations

import ast
from pathlib import Path

import dbt_incremental_dd

PACKAGE = Path(dbt_incremental_dd.__file__).parent


def test_nobody_imports_the_adapter_by_its_other_name() -> None:
    found = []
    for path in PACKAGE.rglob("*.py"):
        if path.is_relative_to(PACKAGE / "adapter"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [(str(path), name) for name in names if name.startswith("dbt.adapters.differential")]
    assert not found
