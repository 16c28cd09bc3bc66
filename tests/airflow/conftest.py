"""Airflow's own files lie in a folder that is gone afterwards."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.airflow.running import Running

if "AIRFLOW_HOME" not in os.environ:
    home = tempfile.mkdtemp(prefix="airflow-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.environ |= {"AIRFLOW_HOME": home, "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Airflow with the example DAGs, and what they work on."""
    from tests.airflow.running import examples_running

    with examples_running(tmp_path_factory.mktemp("airflow")) as found:
        yield found
