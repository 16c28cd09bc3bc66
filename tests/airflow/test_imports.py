"""What Airflow imports needs neither Spark nor dbt; the folder works as Airflow's plugins folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
MODULES = sorted(file.stem for file in (REPOSITORY / "airflow_plugins" / "airflow_differential").glob("[a-z]*.py"))
WITHOUT = """
import importlib, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyspark", "py4j", "dbt", "deltalake", "duckdb", "sqlglot"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
for name in sys.argv[1].split(","):
    importlib.import_module(f"airflow_differential.{name}")
for file in sys.argv[2:]:
    exec(compile(open(file).read(), file, "exec"), {"__name__": "dag", "__file__": file})
"""


def test_without_spark_and_dbt() -> None:
    dags = [str(REPOSITORY / "example_project" / "dags" / name) for name in ("flights.py", "compaction.py")]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, ",".join(MODULES), *dags], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.airflow
def test_the_folder_is_a_plugins_folder(tmp_path: Path) -> None:
    environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    environment["AIRFLOW__CORE__PLUGINS_FOLDER"] = str(REPOSITORY / "airflow_plugins")
    command = [Path(sys.executable).parent / "airflow", "plugins", "--output", "json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (found,) = (
        plugin for plugin in json.loads(done.stdout[done.stdout.index("[") :]) if plugin["name"] == "differential"
    )
    assert "differential_plugin.py" in found["source"]
