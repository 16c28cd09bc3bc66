"""Where there is no Java that will do, a line says so and how to install it: under dbt-dd and under dbt."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from pyspark.errors import PySparkRuntimeError

from dbt_incremental_dd.cli import main
from dbt_incremental_dd.core.errors import SessionError
from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import LONG
from dbt_incremental_dd.runtime import session
from dbt_incremental_dd.runtime.java import require_java, starting
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.layout import Storage
from tests.dbt.project import Project

NONE = "Spark needs Java 17 or newer, and there is none. Install it: "


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_is_open", lambda: False)
    for name in ("JAVA_HOME", "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")


def test_dbt_says_it_in_a_line(no_java: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dbt.cli.main import dbtRunner

    Project(tmp_path).write("models/m.sql", "select soundex('a') as x")
    for command in ("run", "build", "debug"):
        lines: list[str] = []
        runner = dbtRunner(callbacks=[lambda event, to=lines: to.extend(str(event.info.msg).splitlines())])
        where = ["--project-dir", str(tmp_path), "--profiles-dir", str(tmp_path)]
        assert not runner.invoke([command, *where, "--log-level", "info"]).success
        shown = capsys.readouterr().out
        assert sum(NONE in line for line in shown.splitlines()) == 1, shown
        assert not any("Traceback" in line or "JAVA_GATEWAY" in line for line in [*lines, *shown.splitlines()])


def test_dbt_dd_says_it_in_a_line(no_java: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = Storage(str(tmp_path)).collection("s.m")
    schema = Schema((Column("k", LONG),))
    manifest = place.write_manifest(ModelManifest(schema=schema))
    place.create(schema).commit(Commit(upper=5, manifest=manifest))
    assert main(["--state-root", str(tmp_path), "verify"]) == 1
    told = capsys.readouterr()
    assert told.err.startswith(f"dbt-dd: {NONE}") and told.err.count("\n") == 1 and not told.out
    assert main(["--state-root", str(tmp_path), "compact"]) == 0
    assert "files 0 -> 0" in capsys.readouterr().out


def test_watch_does_not_begin(no_java: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where it would try again for ever."""
    Project(tmp_path).write("models/m.sql", "select soundex('a') as x")
    assert main(["--project-dir", str(tmp_path), "--profiles-dir", str(tmp_path), "watch"]) == 1
    told = capsys.readouterr()
    assert told.err.startswith(f"dbt-dd: {NONE}") and told.err.count("\n") == 1 and not told.out


@pytest.mark.parametrize(
    ("platform", "programs", "command"),
    [
        ("darwin", (), "brew install openjdk@17"),
        ("linux", ("dnf",), "sudo dnf install -y java-17-openjdk-headless"),
        ("linux", (), "sudo apt-get install -y openjdk-17-jre-headless"),
    ],
)
def test_the_command_is_the_systems(
    no_java: None, monkeypatch: pytest.MonkeyPatch, platform: str, programs: tuple[str, ...], command: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(shutil, "which", lambda name: name if name in programs else None)
    with pytest.raises(SessionError) as raised:
        require_java()
    assert str(raised.value) == NONE + command


def test_where_it_is_looked_for(no_java: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As Spark's scripts do: JAVA_HOME comes before the path."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("")
    os.chmod(tmp_path / "bin" / "java", 0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    require_java()
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(SessionError, match="JAVA_HOME is /nowhere, where there is none"):
        require_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    require_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    require_java()


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("java.lang.UnsupportedClassVersionError: org/apache/spark/launcher/Main", "and this one is older"),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", "and there is none"),
        ("Error: Could not create the Java Virtual Machine.", r"did not start: .*JAVA_GATEWAY_EXITED.*spark\.log"),
    ],
)
def test_a_jvm_that_does_not_start(tmp_path: Path, written: str, said: str) -> None:
    log = tmp_path / "spark.log"
    log.write_text("UnsupportedClassVersionError, of a former time\n")
    error = PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
    with pytest.raises(SessionError, match=said), starting(str(log)):
        with log.open("a") as more:
            more.write(written)
        raise error
