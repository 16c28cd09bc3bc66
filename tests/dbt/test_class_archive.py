"""The classes that a session loads are archived by the first JVM and mapped by later ones."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dbt_incremental_dd.runtime.class_archive import remove_mapped, with_archive
from dbt_incremental_dd.runtime.user_spark import UserSpark

JAVA, CLASS_PATH = "spark.driver.extraJavaOptions", "spark.driver.extraClassPath"
SESSION = """
import sys
from dbt_incremental_dd.runtime.session import open_session
options = f"-Xlog:class+load:file={sys.argv[2]}"
spark = open_session(sys.argv[1], {"spark.driver.extraJavaOptions": options, "spark.driver.memory": "1g"})
assert spark.range(3).count() == 3
"""
MAPPED = "source: shared objects file (top)"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """One with a Java that has an archive of its own classes, and a Spark without files of settings."""
    java = tmp_path / "java"
    (java / "bin").mkdir(parents=True)
    (java / "bin" / "java").touch(0o755)
    (java / "lib" / "server").mkdir(parents=True)
    for name in ("classes.jsa", "libjvm.so"):
        (java / "lib" / "server" / name).touch()
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    return {"JAVA_HOME": str(java), "SPARK_HOME": str(tmp_path / "spark")}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DBT_DD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "classes"


def options(environment: dict[str, str], given: str = "-Da=b", user: UserSpark | None = None) -> str:
    """Java's, with what was given."""
    return with_archive({JAVA: given}, user or UserSpark(), environment)[JAVA]


def test_one_jvm_writes_it_and_others_map_it(environment: dict[str, str], cache: Path) -> None:
    first = options(environment)
    (path,) = cache.glob("*.jsa")
    assert first.startswith(f"-XX:ArchiveClassesAtExit={path} ") and first.endswith(" -Da=b")
    assert options(environment) == "-Da=b", "it is being written"
    os.utime(path, (0, time.time() - 3600))
    assert "ArchiveClassesAtExit" in options(environment), "whoever began has been killed"
    path.write_bytes(b"\xa8\xba\x0b\xf0 and so on")
    assert options(environment).startswith(f"-XX:SharedArchiveFile={path} ")
    unused = cache / "other.jsa"
    unused.touch()
    os.utime(unused, (0, time.time() - 200 * 24 * 3600))
    os.utime(Path(environment["SPARK_HOME"]) / "jars", (0, 1))
    assert "ArchiveClassesAtExit" in options(environment), "another Spark has another one"
    assert path.exists() and not unused.exists()


def test_what_is_the_users_own_is_left_alone(environment: dict[str, str], tmp_path: Path, cache: Path) -> None:
    for given in ("-javaagent:a.jar", "-Xshare:off", "-XX:SharedArchiveFile=mine.jsa", "--limit-modules=a", "'"):
        assert options(environment, given) == given
    assert options({**environment, "JAVA_TOOL_OPTIONS": "-javaagent:a.jar"}) == "-Da=b"
    assert options({**environment, "DBT_DD_CLASS_ARCHIVE": "0"}) == "-Da=b"
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "core-site.xml").touch()
    for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR"):
        assert options({**environment, name: str(tmp_path / "conf")}) == "-Da=b", "JVMs refuse such a class path"
    assert options(environment, user=UserSpark({CLASS_PATH: str(tmp_path / "conf")})) == "-Da=b"
    (Path(environment["JAVA_HOME"]) / "lib" / "server" / "classes.jsa").unlink()
    assert options(environment) == "-Da=b"
    assert not cache.exists()


def test_an_archive_with_which_no_jvm_starts_is_removed(environment: dict[str, str], cache: Path) -> None:
    assert not remove_mapped({JAVA: options(environment)})
    (path,) = cache.glob("*.jsa")
    path.write_bytes(b"not what it was")
    assert not remove_mapped({JAVA: "-XX:SharedArchiveFile=/of/somebody/else.jsa"})
    assert remove_mapped({JAVA: options(environment)}) and not path.exists()


def test_a_folder_in_which_others_write_is_not_used(environment: dict[str, str], cache: Path) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    assert options(environment) == "-Da=b"


def test_sessions_share_it(tmp_path: Path, cache: Path) -> None:
    ours = ("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    found = []
    for number in range(2):
        loaded = tmp_path / f"loaded{number}"
        command = [sys.executable, "-c", SESSION, str(tmp_path / "state"), str(loaded)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert not done.stdout and "cds" not in done.stderr, done.stdout + done.stderr
        found.append(loaded.read_text().count(MAPPED))
    assert found[0] == 0 and found[1] > 5_000, found
