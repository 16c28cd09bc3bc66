"""Airflow's own files lie in a folder that is gone afterwards."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

if "AIRFLOW_HOME" not in os.environ:
    home = tempfile.mkdtemp(prefix="airflow-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.environ |= {"AIRFLOW_HOME": home, "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
