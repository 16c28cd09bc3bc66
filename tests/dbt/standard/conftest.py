"""The suite's fixtures, on the one Spark session; and its projects with differential models."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from dbt.tests.fixtures import project as suite

from dbt_incremental_dd.core.errors import DifferentialError  # noqa: F401 - before dbt imports the adapter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# pytest finds fixtures by the names that a conftest has.
globals().update({name: found for name, found in vars(suite).items() if hasattr(found, "_fixture_function_marker")})

_NUMBERS = itertools.count()
_MATERIALIZED = re.compile(r"""materialized\s*=\s*(['"])(?:table|view|incremental)\1""")

REPRESENTATIVE = (
    "TestChangeRelationType",
    "TestConstraintsRollbackDifferential",
    "TestContractDifferential",
    "TestSimpleMaterializations",
    "TestSingularTestsEphemeralDifferential",
)
"""What a default run has; the rest takes minutes and is ``slow``."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        suite_class = getattr(item, "cls", None)
        if item.path.parent == Path(__file__).parent and suite_class and suite_class.__name__ not in REPRESENTATIVE:
            item.add_marker("slow")


@pytest.fixture(scope="class")
def prefix() -> str:
    return f"suite{next(_NUMBERS)}"


@pytest.fixture(scope="class")
def dbt_profile_target(spark: SparkSession) -> dict[str, Any]:
    return {"type": "differential", "threads": 2}


@pytest.fixture(scope="class")
def logs_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = str(tmp_path_factory.mktemp("logs"))
    os.environ["DBT_LOG_PATH"] = folder
    yield folder
    del os.environ["DBT_LOG_PATH"]


@pytest.fixture(scope="class")
def project(project_setup: Any, project_files: None, request: pytest.FixtureRequest) -> Any:
    """With ``differential = True`` in the test's class, all models that are tables, views or incremental ones are
    differential."""
    if getattr(request.cls, "differential", False):
        root = Path(project_setup.project_root)
        for path in (root / "models").rglob("*.sql"):
            path.write_text(_MATERIALIZED.sub("materialized='differential'", path.read_text()))
        settings = yaml.safe_load((root / "dbt_project.yml").read_text())
        settings.setdefault("models", {})["+materialized"] = "differential"
        (root / "dbt_project.yml").write_text(yaml.safe_dump(settings))
    return project_setup


@pytest.fixture(scope="class", autouse=True)
def no_former_adapter() -> None:
    """One that ``dbt debug`` has left knows no project, and the suite would go on with it."""
    from dbt.adapters.factory import reset_adapters

    reset_adapters()
