"""What newcomers do wrong is told in a line or two, with what to do; never by a traceback. Without a JVM."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from dbt_incremental_dd.cli import main, verbs
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import LONG
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.layout import Storage
from tests.dbt.project import Project

FIRST = 1_714_557_600_000
NO_PROJECT = r"no dbt project in .*: no dbt_project\.yml\n.*--project-dir.*dbt-dd init"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """One collection, m, that was first built at 2024-05-01 10:00:00."""
    for name in ("DBT_PROFILE", "DBT_PROFILES_DIR", "DBT_PROJECT_DIR", "DBT_TARGET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made = Project(tmp_path / "p")
    monkeypatch.chdir(made.folder)
    place = Storage(str(made.folder / ".dbt_incremental_dd")).collection("s.m")
    schema = Schema((Column("k", LONG),))
    manifest = place.write_manifest(ModelManifest(schema=schema))
    place.create(schema).commit(Commit(upper=FIRST + 1, since=FIRST, manifest=manifest))
    return made


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 1) -> str:
    capsys.readouterr()
    try:
        assert main(arguments) == code
    except SystemExit as ended:
        assert ended.code == code
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err and (code == 2 or shown.err.startswith("dbt-dd: ")), shown
    return shown.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("query nope", r"no collection nope .*\n.*Known collections: s\.m"),
        ("query m --as-of 2020-01-01", r"begins at since = 2024-05-01 10:00:00\n.*first built then, or .*compacted"),
        ("query m --as-of 2030-01-01", r"final only up to 2024-05-01 10:00:00\n.*dbt run"),
        ("query m --as-of yesterday", r"'yesterday' is not a time\n.*ISO 8601"),
        ("subscribe m --select selec", r"not one SELECT"),
        ("serve --port 99999", r"no port 99999\n.*up to 65535"),
        ("serve --pages nowhere", r"no folder nowhere"),
        ("watch --every soon", r"'soon' is not a duration"),
        ("status --target prod", r"no target of p called prod"),
        ("status --project-dir /nowhere", NO_PROJECT),
    ],
)
def test_in_a_project(project: Project, capsys: pytest.CaptureFixture[str], arguments: str, said: str) -> None:
    assert re.search(said, told(capsys, *arguments.split())), told(capsys, *arguments.split())


def test_a_port_that_is_taken(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for arguments in (("--port", port), ("--port", "0", "--pgwire", port)):
            assert re.search(rf"port {port}: .*in use\s+Give another", told(capsys, "serve", *arguments))


def test_a_wrong_call(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert "'-1' is not a number of rows" in told(capsys, "query", "m", "--limit", "-1", code=2)
    assert "invalid choice: 'statsu'" in told(capsys, "statsu", code=2)


@pytest.mark.parametrize("verb", ["status", "verify", "compact", "vacuum", "watch", "query m", "explain m", "serve"])
def test_outside_of_a_project(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert re.search(NO_PROJECT, told(capsys, *verb.split()))
    assert [path.name for path in tmp_path.iterdir()] == ["p"], "nothing is made"


def test_profiles(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    text = (project.folder / "profiles.yml").read_text()
    project.write("profiles.yml", text.replace("type: differential", "type: spark"))
    for verb in ("status", "watch"):
        assert re.search(r"(?s)target dev of profile p .*type spark.*--target", told(capsys, verb))
    (project.folder / "profiles.yml").unlink()
    assert re.search(r"no profiles\.yml .*\n.*--profiles-dir", told(capsys, "watch"))
    project.write("dbt_project.yml", "name: p\n")
    assert re.search(r"dbt_project\.yml names no profile\n.*profile: NAME", told(capsys, "status"))


def test_a_misspelt_setting_of_the_profile(tmp_path: Path) -> None:
    project = Project(tmp_path, state_roots="elsewhere")
    project.dbt("parse", fails=True)
    assert "unknown setting state_roots. Did you mean state_root?" in str(project.last.exception)
    project = Project(tmp_path, thresholds={"local_row": 0})
    project.dbt("parse", fails=True)
    assert re.search(
        r"(?s)unknown setting thresholds\.local_row.*Did you mean local_rows\?", str(project.last.exception)
    )


def test_a_project_that_was_never_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(Project(tmp_path).folder)
    for verb in ("status", "verify", "compact"):
        assert main([verb, "--project-dir", folder, "--profiles-dir", folder]) == 0
        assert "Run `dbt run` first" in capsys.readouterr().out
    assert "There are none yet: `dbt run` makes them." in told(capsys, "query", "m", "--project-dir", folder)


@pytest.mark.parametrize("name", ["s.m", "S.M", "s.m__changes"])
def test_a_model_that_reads_itself(name: str) -> None:
    request = ModelRequest("s.m", "s.m", f"select k from s.t union all select k from {name}", ModelConfig())
    with pytest.raises(ConfigError, match=r"s\.m: its SQL reads the model itself \(\{\{ this \}\}, or s\.m"):
        _ = request.relations


def test_a_column_without_a_type_beside_others() -> None:
    settings = {"path": "data", "format": "json"}
    with pytest.raises(ConfigError, match=r"source s\.t: column b has no data_type, while others have one"):
        parse_source("s.t", "s.t", settings, {"a": "int", "b": None}, "/p")
    assert parse_source("s.t", "s.t", settings, {"a": None, "b": None}, "/p").columns == ()
    assert parse_source("s.t", "s.t", {}, {"a": "int", "b": None}, "/p").columns == (("a", "int"),)


def _interrupted(_: object) -> int:
    raise KeyboardInterrupt


def _failed(_: object) -> int:
    raise PermissionError(13, "Permission denied", "/state/log.json")


@pytest.mark.parametrize(("verb", "code", "said"), [(_interrupted, 130, ""), (_failed, 1, "dbt-dd: [Errno 13] ")])
def test_how_it_ends(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    verb: Callable[[object], int],
    code: int,
    said: str,
) -> None:
    monkeypatch.setattr(verbs, "VERBS", {"status": verb})
    assert main(["status"]) == code
    assert capsys.readouterr().err.startswith(said)


def test_it_can_be_interrupted_from_the_first_moment() -> None:
    """What takes long to import is imported once a command has begun."""
    code = "import sys, dbt_incremental_dd.cli; print(*{'pyarrow', 'pandas', 'deltalake', 'yaml'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not done.stdout.split()


def test_the_profile_is_yaml(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("p: [", yaml.safe_dump(["p"])):
        project.write("profiles.yml", text)
        assert "profiles.yml" in told(capsys, "status")
