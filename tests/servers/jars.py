"""Java packages of the central Maven repository, fetched by the resolver that pyspark ships."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[2] / ".jars"
"""What was fetched, for all tests of a checkout."""


@cache
def pyspark_home() -> Path:
    """The folder of the pyspark that runs the tests."""
    found = importlib.util.find_spec("pyspark")
    assert found is not None and found.submodule_search_locations
    return Path(found.submodule_search_locations[0])


def fetched(name: str, fetch: Callable[[Path], None]) -> Path:
    """A folder of the cache, filled by ``fetch`` where it is not there: by one process at a time."""
    folder = CACHE / name
    if (folder / "complete").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            fetch(folder)
            (folder / "complete").touch()
    return folder


def program(name: str, *folders: str) -> str:
    """A program of this machine, on its path or in one of the folders. Skips the test where there is none."""
    path = os.pathsep.join((os.environ.get("PATH", ""), *folders))
    found = shutil.which(name, path=path)
    return found or pytest.skip(f"{name} is not installed")


def resolve(what: str, *arguments: str) -> None:
    """Calls the resolver for what is missing."""
    (ivy,) = (pyspark_home() / "jars").glob("ivy-*.jar")
    command = ["java", "-cp", str(ivy), "org.apache.ivy.Main", "-cache", str(CACHE / "cache"), "-warn", *arguments]
    done = subprocess.run([*command, "-confs", "default"], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, f"{what} cannot be fetched:\n{done.stdout}\n{done.stderr}"


def jars(coordinates: str) -> list[Path]:
    """The jar of ``group:artifact:version`` with all that it needs."""

    def fetch(folder: Path) -> None:
        where = f"{folder}/[artifact]-[revision](-[classifier]).[ext]"
        resolve(coordinates, "-dependency", *coordinates.split(":"), "-retrieve", where)

    return sorted(fetched(re.sub(r"[^A-Za-z0-9._-]+", "_", coordinates), fetch).glob("*.jar"))


def classpath(*coordinates: str) -> str:
    """The jars of several packages as Java's class path."""
    return ":".join(str(path) for one in coordinates for path in jars(one))
