"""A manifest that is run more than once; dbt compiles by it without a session of Spark."""

from __future__ import annotations

from pathlib import Path

from dbt_incremental_dd.watch.project import Project as Warm
from dbt_incremental_dd.watch.project import forget_compiled
from tests.dbt.project import Project


def test_models_over_ephemeral_ones_are_compiled_again(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("models/few.sql", "{{ config(materialized='ephemeral') }} select {{ var('n', 0) }} as n")
    project.write("models/over.sql", "select n from {{ ref('few') }}")
    warm = Warm(str(tmp_path), str(tmp_path))
    warm.parse()
    (over,) = [node for node in warm._models() if node.name == "over"]
    for n in (1, 2, 3):
        forget_compiled(warm._manifest)
        command = ["compile", "--no-introspect", "--no-populate-cache", "--vars", f"n: {n}"]
        assert warm._invoke(command, warm._manifest).success
        assert over.compiled_code.count("__dbt__cte__few as (") == 1 and f"select {n} as n" in over.compiled_code
