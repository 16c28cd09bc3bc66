"""An archive of the classes that a session loads (application class-data sharing, JEP 350): a JVM maps it instead of
reading and verifying them out of Spark's jars.

The first JVM on a machine writes it as it ends, which is after the command that has started it. Later ones check by
themselves that it is of their Java and their class path, and go without it otherwise. It is safe to delete.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from dbt_incremental_dd.runtime.settings import JAVA_OPTIONS
from dbt_incremental_dd.runtime.user_spark import UserSpark, conf_folder, spark_home
from dbt_incremental_dd.storage.mirror import default_folder

_CLASS_PATH = "spark.driver.extraClassPath"
_SWITCH = "DBT_DD_CLASS_ARCHIVE"
"""0: there is none."""
_VARIABLES = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_HARMLESS = (
    "-D",
    "-Xms",
    "-Xmx",
    "-Xmn",
    "-Xss",
    "-Xlog",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:Tier",
    "-XX:+UseG1GC",
    "-XX:+UseParallelGC",
)
"""Beginnings of options with which a JVM is asked for an archive. With some others, of agents and modules, it would not
start."""
_MAP = "-XX:SharedArchiveFile="
_QUIET = "-Xlog:cds*=off -Xlog:class+path*=off"
"""Of classes that cannot be archived, and of an archive that does not fit, nobody has to know."""
_BEGUN = 600.0
"""Seconds after which an archive that nobody has completed is begun again."""
_UNUSED = 90 * 24 * 3600.0
"""Seconds after its last use for which an archive is kept."""


def with_archive(settings: Mapping[str, str], user: UserSpark, environment: Mapping[str, str]) -> dict[str, str]:
    """A new session's settings, with options for its JVM to map the archive, or to write it; as they are where there
    can be none."""
    given, extra = settings.get(JAVA_OPTIONS, ""), {**user.settings, **settings}.get(_CLASS_PATH, "")
    java = _java(environment)
    if java is None or not _is_possible(given, extra, java, environment):
        return dict(settings)
    ours = _options(_folder() / f"{_key(java, spark_home(environment), extra)}.jsa")
    return {**settings, JAVA_OPTIONS: f"{ours} {given}".strip()}


def remove_mapped(settings: Mapping[str, str]) -> bool:
    """Removes the archive that a JVM with these settings maps. Returns whether there was one."""
    found = re.search(rf"{_MAP}(\S+)", settings.get(JAVA_OPTIONS, ""))
    if found is None or not found[1].startswith(str(_folder())):
        return False
    with suppress(OSError):
        os.unlink(found[1])
    return True


def _folder() -> Path:
    return Path(default_folder()) / "classes"


def _options(path: Path) -> str:
    """Nothing while another JVM writes the archive, and where it cannot be stored."""
    folder = path.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(folder):  # what is mapped is run
            return ""
        if _is_complete(path):
            os.utime(path)
            return f"{_MAP}{path} {_QUIET}"
        if path.exists() and time.time() - path.stat().st_mtime < _BEGUN:
            return ""
        path.touch()
        _forget_unused(folder)
    except OSError:
        return ""
    return f"-XX:ArchiveClassesAtExit={path} {_QUIET}"


def _is_private(folder: Path) -> bool:
    """Whether nobody but this user writes there."""
    found = folder.stat()
    return found.st_uid == os.getuid() and not found.st_mode & 0o022


def _java(environment: Mapping[str, str]) -> Path | None:
    """The program that Spark's scripts start."""
    home = environment.get("JAVA_HOME")
    found = shutil.which(f"{home}/bin/java") if home else shutil.which("java", path=environment.get("PATH"))
    return Path(found).resolve() if found else None


def _is_possible(given: str, extra: str, java: Path, environment: Mapping[str, str]) -> bool:
    """An archive of ours goes on top of the one that comes with Java, and holds for a class path of jars."""
    if sys.platform == "win32" or environment.get(_SWITCH) == "0" or environment.get("SPARK_DIST_CLASSPATH"):
        return False
    options = " ".join([given, *(environment.get(name, "") for name in _VARIABLES)])
    try:
        is_plain = all(word.startswith(_HARMLESS) for word in shlex.split(options))
    except ValueError:
        return False
    hadoop = (environment.get(name, "") for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"))
    folders = [str(conf_folder(environment)), *hadoop, *extra.split(os.pathsep)]
    is_of_jars = not any(os.path.isdir(folder) and os.listdir(folder) for folder in folders if folder)
    return is_plain and is_of_jars and (java.parents[1] / "lib" / "server" / "classes.jsa").exists()


def _key(java: Path, home: Path, extra: str) -> str:
    """The same for the same Java and the same class path."""
    library = next((java.parents[1] / "lib" / "server").glob("libjvm.*"), java)
    states = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in (library, home / "jars")]
    return hashlib.sha256(json.dumps([version("pyspark"), extra, states]).encode()).hexdigest()[:16]


def _is_complete(path: Path) -> bool:
    """Whether the JVM that wrote it came to its end: the head, which begins with a number, is written last."""
    try:
        with path.open("rb") as file:
            return any(file.read(4))
    except FileNotFoundError:
        return False


def _forget_unused(folder: Path) -> None:
    for path in folder.glob("*.jsa"):
        if time.time() - path.stat().st_mtime > _UNUSED:
            path.unlink(missing_ok=True)
