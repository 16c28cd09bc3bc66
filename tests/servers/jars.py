"""Java packages of the central Maven repository, fetched by the resolver that pyspark ships."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from functools import cache
from pathlib import Path

CACHE = Path(__file__).parents[2] / ".jars"
"""What was fetched, for all tests of a checkout."""


@cache
def pyspark_home() -> Path:
    """The folder of the pyspark that runs the tests."""
    found = importlib.util.find_spec("pyspark")
    assert found is not None and found.submodule_search_locations
    return Path(found.submodule_search_locations[0])


def jars(coordinates: str) -> list[Path]:
    """The jar of ``group:artifact:version`` with all that it needs."""
    folder = CACHE / re.sub(r"[^A-Za-z0-9._-]+", "_", coordinates)
    if not (folder / "complete").exists():
        (ivy,) = (pyspark_home() / "jars").glob("ivy-*.jar")
        resolve = ["java", "-cp", str(ivy), "org.apache.ivy.Main", "-cache", str(CACHE / "cache"), "-warn"]
        wanted = ["-dependency", *coordinates.split(":"), "-confs", "default"]
        done = subprocess.run(
            [*resolve, *wanted, "-retrieve", f"{folder}/[artifact]-[revision](-[classifier]).[ext]"],
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, f"{coordinates} cannot be fetched:\n{done.stdout}\n{done.stderr}"
        (folder / "complete").touch()
    return sorted(folder.glob("*.jar"))


def classpath(*coordinates: str) -> str:
    """The jars of several packages as Java's class path."""
    return ":".join(str(path) for one in coordinates for path in jars(one))
