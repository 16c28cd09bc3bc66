"""Where ``dbt-dd`` finds the collections, and what it tells Spark: the project's profile says so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from dbt.adapters.differential.credentials import DifferentialCredentials
from dbt_common.exceptions import DbtRuntimeError

from dbt_incremental_dd.cli import main
from dbt_incremental_dd.cli.arguments import parser
from dbt_incremental_dd.cli.profile import Location, locate
from dbt_incremental_dd.core.errors import ConfigError
from tests.dbt.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TARGETS: dict[str, Any] = {
    "dev": {"type": "differential", "schema": "s"},
    "prod": {
        "type": "differential",
        "schema": "s",
        "state_root": "s3://bucket/state/",
        "storage_options": {"AWS_ALLOW_HTTP": True, "AWS_REGION": "{{ env_var('A_REGION') }}"},
        "server_side_parameters": {"spark.sql.shuffle.partitions": 7, "spark.sql.session.timeZone": "Asia/Tokyo"},
    },
    "spark": {"type": "spark", "schema": "s"},
    "cluster": {"type": "differential", "schema": "s", "engine": "spark", "thresholds": {"found_rows": 7}},
    "text": {"type": "differential", "schema": "s", "thresholds": "found_rows"},
    "stays": {"type": "differential", "schema": "s", "keep_session": "10 minutes"},
    "unit": {"type": "differential", "schema": "s", "keep_session": 10},
    "typo": {"type": "differential", "schema": "s", "thresholds": {"found_row": 7}},
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No project in the current folder, nor in the home."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "home")
    for name in ("DBT_PROFILE", "DBT_PROFILES_DIR", "DBT_PROJECT_DIR", "DBT_TARGET"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "models").mkdir(parents=True)
    (folder / "dbt_project.yml").write_text("name: p\nprofile: mine\n")
    (folder / "profiles.yml").write_text(yaml.safe_dump({"mine": {"target": "dev", "outputs": TARGETS}}))
    return folder


def found(*arguments: str) -> Location:
    return locate(parser().parse_args(arguments))


def test_the_profiles_own_target(project: Path) -> None:
    assert found("--project-dir", str(project), "status").state_root == str(project / ".dbt_incremental_dd")


def test_another_target_before_or_after_the_verb(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_REGION", "mars")
    for call in (["--target", "prod", "status"], ["status", "--target", "prod"]):
        one = found("--project-dir", str(project), *call)
        assert one.state_root == "s3://bucket/state"
        assert one.storage_options == {"AWS_ALLOW_HTTP": "true", "AWS_REGION": "mars"}
        assert one.settings == {"spark.sql.shuffle.partitions": "7", "spark.sql.session.timeZone": "Asia/Tokyo"}


def test_limits_of_what_the_driver_computes(project: Path) -> None:
    thresholds = found("--project-dir", str(project), "--target", "cluster", "compact").thresholds
    assert (thresholds.local_rows, thresholds.found_rows) == (0, 7)


def test_a_state_root_alone_needs_no_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    (project / "profiles.yml").unlink()
    assert found("status", "--state-root", "there") == Location(str(project / "there"))


def test_a_state_root_beside_a_target_has_its_settings(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_REGION", "mars")
    monkeypatch.chdir(project)
    one = found("--state-root", "/there", "--target", "prod", "status")
    assert one.state_root == "/there" and one.settings["spark.sql.session.timeZone"] == "Asia/Tokyo"


def test_it_is_found_as_dbt_finds_it(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "models")
    assert found("status").state_root == str(project / ".dbt_incremental_dd")
    (tmp_path / "home" / ".dbt").mkdir()
    (project / "profiles.yml").rename(tmp_path / "home" / ".dbt" / "profiles.yml")
    monkeypatch.setenv("DBT_TARGET", "dev")
    (project / "dbt_project.yml").write_text("name: p\nprofile: \"{{ 'mi' ~ 'ne' }}\"\n")
    assert found("query", "m").state_root == str(project / ".dbt_incremental_dd")


def test_without_a_project_it_is_the_folders(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no dbt project"):
        found("status")
    (tmp_path / "home" / ".dbt_incremental_dd").mkdir()
    assert found("status") == Location(str(tmp_path / "home" / ".dbt_incremental_dd"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--target", "prod"], ["profiles.yml cannot be read", "A_REGION", "--target"]),
        (["--target", "spark"], ["target spark of profile mine", "type spark", "--target"]),
        (["--target", "test"], ["no target of mine called test", "dev, prod, spark"]),
        (["--target", "text"], ["thresholds", "profiles.yml", "'found_rows'", "mapping"]),
        (["--target", "typo"], ["thresholds.found_row", "found_rows?"]),
        (["--target", "unit"], ["keep_session is 10", "10 minutes"]),
        (["--profiles-dir", "nowhere"], ["no profiles.yml", "nowhere", "--profiles-dir"]),
    ],
)
def test_what_is_wrong_is_told(project: Path, arguments: list[str], said: list[str]) -> None:
    with pytest.raises(ConfigError) as raised:
        found("--project-dir", str(project), *arguments, "status")
    assert all(part in str(raised.value) for part in said), raised.value


def test_how_long_a_session_is_kept(project: Path) -> None:
    assert found("--project-dir", str(project), "--target", "stays", "verify").keep == 600
    assert found("--project-dir", str(project), "verify").keep == 0
    with pytest.raises(DbtRuntimeError, match=r"keep_session is '10'\n.*10 minutes"):
        DifferentialCredentials.from_dict({"schema": "s", "keep_session": 10})


def test_a_broken_file_is_told(project: Path) -> None:
    (project / "profiles.yml").write_text("mine: [")
    with pytest.raises(ConfigError, match=r"profiles\.yml cannot be read"):
        found("--project-dir", str(project), "status")
    (project / "dbt_project.yml").unlink()
    with pytest.raises(ConfigError, match=r"no .*dbt_project\.yml"):
        found("--project-dir", str(project), "--target", "dev", "status")


def test_verbs_go_by_the_profile(tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """A query that means something else in another time zone."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    settings = {"spark.sql.session.timeZone": "Asia/Tokyo"}
    made = Project(tmp_path / "p", state_root="stored", server_side_parameters=settings)
    made.records("data/s.jsonl", [{"id": 1, "at": "2024-05-01T22:00:00Z"}])
    columns = [{"name": "id", "data_type": "int"}, {"name": "at", "data_type": "timestamp"}]
    meta = {"differential": {"path": "data/s.jsonl"}}
    source = {"name": "feed", "tables": [{"name": "s", "columns": columns, "config": {"meta": meta}}]}
    made.write("models/sources.yml", yaml.safe_dump({"version": 2, "sources": [source]}))
    made.write("models/m.sql", "select id, cast(at as date) as day from {{ source('feed', 's') }}")
    try:
        made.dbt("run")
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        assert main(["--project-dir", str(made.folder), "verify"]) == 0
        assert "1 rows  exact" in capsys.readouterr().out
        assert main(["query", "m", "--project-dir", str(made.folder), "--format", "csv"]) == 0
        assert capsys.readouterr().out.split() == ["id,day", "1,2024-05-02"]
        assert main(["status", "--project-dir", str(made.folder), "--state-root", str(tmp_path / "stored")]) == 0
        assert "No collections" in capsys.readouterr().out
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))
