"""The user's own Spark stays the user's: what its files set is left alone, ours are defaults where nothing is set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.runtime.settings import REQUIRED, own_metastore, session_settings
from dbt_incremental_dd.runtime.user_spark import UserSpark, properties, user_spark

JAVA, WAREHOUSE = "spark.driver.extraJavaOptions", "spark.sql.warehouse.dir"
URL = "spark.hadoop.javax.jdo.option.ConnectionURL"
RETRY = "spark.hadoop.hive.hmshandler.retry.interval"
HIVE_SITE = "<configuration>{}</configuration>"
PROPERTY = "<property><name>{}</name><value>somewhere</value></property>"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A state root in a project's folder, which is the current one."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return str(tmp_path / "project" / ".dbt_incremental_dd")


def conf(folder: Path, **files: str) -> dict[str, str]:
    """The environment of a user with a folder of Spark's own files."""
    for name, text in files.items():
        (folder / name.replace("_", "-")).with_suffix(".xml" if "hive" in name else ".conf").write_text(text)
    return {"SPARK_CONF_DIR": str(folder)}


def test_a_properties_file_is_read_as_java_reads_it() -> None:
    text = (
        "# a comment\n   ! another \\\nspark.a  1\nspark.b=two words  \n\tspark.c : 3\nspark.d\n"
        "spark.e -Da=b \\\n    -Dc=d\\\\\nspark.f\\ g=\\u00e9\\tx\n\nspark.h=#no comment"
    )
    expected = {"spark.a": "1", "spark.b": "two words", "spark.c": "3", "spark.d": ""}
    assert properties(text) == {
        **expected,
        "spark.e": "-Da=b -Dc=d\\",
        "spark.f g": "é\tx",
        "spark.h": "#no comment",
    }


def test_what_is_set_nowhere_is_ours(root: str, tmp_path: Path) -> None:
    user = user_spark(conf(tmp_path))
    assert user == UserSpark()
    found = session_settings(root, {}, {"fs.s3a.endpoint": "there"}, user)
    assert found[WAREHOUSE] == f"{root}/warehouse"
    assert f"{root}/metastore_db" in found[URL] and RETRY in found
    assert found["spark.hadoop.fs.s3a.endpoint"] == "there"
    assert {"spark.master", "spark.driver.memory", "spark.sql.shuffle.partitions"} <= set(found)


def test_defaults_are_those_of_the_machines_that_do_the_work(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_MASTER", raising=False)
    cluster = {"spark.master": "spark://master:7077"}
    assert "spark.sql.shuffle.partitions" not in session_settings(root, cluster, {}, UserSpark())
    assert session_settings("s3://b/state", {}, {}, UserSpark())[WAREHOUSE] == "s3a://b/state/warehouse"


def test_what_the_users_file_sets_is_left_out(root: str, tmp_path: Path) -> None:
    """Settings that we give come before a file: so those of the file must not be given."""
    written = {
        WAREHOUSE: "/their/warehouse",
        URL: "jdbc:postgresql:theirs",
        "spark.driver.memory": "9g",
        "spark.hadoop.fs.s3a.endpoint": "here",
        "spark.master": "spark://theirs:7077",
        "spark.ui.enabled": "true",
    }
    text = "\n".join(f"{name} {value}" for name, value in written.items())
    user = user_spark(conf(tmp_path, spark_defaults=f"{text}\n{JAVA} -Dtheirs=1\nspark.sql.ansi.enabled true\nx.y 1"))
    found = session_settings(root, {"spark.driver.memory": "2g"}, {"fs.s3a.endpoint": "there"}, user)
    assert {name for name in written if name in found} == {"spark.driver.memory"}, "the profile's own"
    assert found["spark.driver.memory"] == "2g"
    assert "spark.sql.shuffle.partitions" not in found, "their cluster's are not this machine's"
    assert found[JAVA].endswith(" -Dtheirs=1") and "derby" in found[JAVA]
    assert {name: found[name] for name in REQUIRED} == REQUIRED
    assert own_metastore(root, {}, user) is None
    assert "x.y" not in user.settings


def test_options_of_spark_submit_count(root: str, tmp_path: Path) -> None:
    (tmp_path / "other.conf").write_text("spark.sql.shuffle.partitions 7\nspark.app.name theirs")
    environment = conf(tmp_path, spark_defaults="spark.ui.enabled true")
    arguments = (
        f"--properties-file {tmp_path}/other.conf --driver-memory=3g -c spark.x=1=1 --conf 'spark.y=a b' --master"
    )
    environment["PYSPARK_SUBMIT_ARGS"] = f"{arguments} local[1] pyspark-shell"
    user = user_spark(environment)
    assert user.settings == {
        "spark.sql.shuffle.partitions": "7",
        "spark.app.name": "theirs",
        "spark.driver.memory": "3g",
        "spark.x": "1=1",
        "spark.y": "a b",
        "spark.master": "local[1]",
    }
    assert not set(user.settings) & set(session_settings(root, {}, {}, user))


def test_hive_site_is_the_users_metastore(root: str, tmp_path: Path) -> None:
    user = user_spark(conf(tmp_path, hive_site=HIVE_SITE.format(PROPERTY.format("hive.metastore.uris"))))
    found = session_settings(root, {}, {}, user)
    assert URL not in found and RETRY not in found and found[WAREHOUSE] == f"{root}/warehouse"
    theirs = HIVE_SITE.format(PROPERTY.format("hive.metastore.warehouse.dir"))
    (tmp_path / "hadoop").mkdir()
    (tmp_path / "hadoop" / "hive-site.xml").write_text(theirs)
    elsewhere = {"SPARK_CONF_DIR": "/nowhere", "HADOOP_CONF_DIR": str(tmp_path / "hadoop")}
    assert WAREHOUSE not in session_settings(root, {}, {}, user_spark(elsewhere))
    (tmp_path / "hive-site.xml").write_text("<configuration>")
    with pytest.raises(ConfigError, match=r"hive-site\.xml cannot be read"):
        user_spark(conf(tmp_path))


def test_a_logging_of_the_users_own_is_not_made_quiet(root: str, tmp_path: Path) -> None:
    assert "log4j2" in session_settings(root, {}, {}, user_spark(conf(tmp_path)))[JAVA]
    (tmp_path / "log4j2.properties.template").write_text("")
    assert not user_spark(conf(tmp_path)).has_logging
    (tmp_path / "log4j2.properties").write_text("")
    assert "log4j2" not in session_settings(root, {}, {}, user_spark(conf(tmp_path)))[JAVA]


def test_a_project_of_type_spark_keeps_its_metastore(root: str, tmp_path: Path) -> None:
    folder = Path(root).parent
    (folder / "metastore_db").mkdir()
    (folder / "metastore_db" / "service.properties").write_text("")
    assert own_metastore(root, {}, UserSpark()) == f"{root}/metastore_db", "this folder is no project"
    (folder / "dbt_project.yml").write_text("name: p")
    found = session_settings(root, {}, {}, UserSpark())
    assert f"databaseName={folder}/metastore_db;" in found[URL]
    assert found[WAREHOUSE] == f"{folder}/spark-warehouse"
    (Path(root) / "metastore_db").mkdir(parents=True, exist_ok=True)
    assert own_metastore(root, {}, UserSpark()) == f"{root}/metastore_db", "ours has been made before"


def test_methods_that_only_send_statements_are_refused(tmp_path: Path) -> None:
    from dbt.adapters.differential import DifferentialCredentials
    from dbt_common.exceptions import DbtRuntimeError

    from dbt_incremental_dd.cli.arguments import parser
    from dbt_incremental_dd.cli.profile import locate

    def profile(**target: Any) -> dict[str, Any]:
        written = {"schema": "s", "host": "NA", **target}
        outputs = {"dev": {"type": "differential", **written}}
        (tmp_path / "profiles.yml").write_text(yaml.safe_dump({"p": {"target": "dev", "outputs": outputs}}))
        return DifferentialCredentials.__pre_deserialize__(written)

    (tmp_path / "dbt_project.yml").write_text("name: p\nprofile: p")
    options = ["--project-dir", str(tmp_path), "--profiles-dir", str(tmp_path), "status"]
    for method in ("thrift", "http", "odbc"):
        with pytest.raises(DbtRuntimeError, match=f"method {method}: .*\n.*SPARK_REMOTE"):
            DifferentialCredentials(**profile(method=method))
        with pytest.raises(ConfigError, match=f"method {method}"):
            locate(parser().parse_args(options))
    for target in ({}, {"method": "session"}):
        assert DifferentialCredentials(**profile(**target)).method == "session"
        locate(parser().parse_args(options))


SESSION = """
import json, sys
from dbt_incremental_dd.runtime.session import open_session

root, names = sys.argv[1], json.loads(sys.argv[2])
spark = open_session(root, {"spark.sql.session.timeZone": "Asia/Tokyo"})
spark.sql("SET spark.sql.shuffle.partitions = 5")
again = open_session(root, {})
assert again is spark
print(json.dumps({name: spark.conf.get(name) for name in names}))
"""


def test_all_of_it_holds_in_the_session(tmp_path: Path) -> None:
    """What the file sets, but for what the profile sets as well and what exactness needs; and a SET stays, too."""
    written = {
        WAREHOUSE: f"file:{tmp_path}/theirs",
        "spark.sql.catalog.lake": "org.example.Catalog",
        "spark.driver.memory": "700m",
        "spark.sql.shuffle.partitions": "11",
        "spark.sql.session.timeZone": "America/Lima",
        "spark.app.name": "theirs",
        JAVA: "-Dtheirs=1 -XX:TieredStopAtLevel=1",
        "spark.sql.ansi.enabled": "true",
    }
    text = "\n".join(f"{name} {value}" for name, value in written.items())
    environment = {**os.environ, **conf(tmp_path, spark_defaults=text)}
    command = [sys.executable, "-c", SESSION, str(tmp_path / "state"), json.dumps([*written, URL])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    java, url = found.pop(JAVA), found.pop(URL)
    assert "-Dtheirs=1" in java and "derby.log" in java and f"{tmp_path}/state/metastore_db" in url
    changed = {"spark.sql.shuffle.partitions": "5", "spark.sql.session.timeZone": "Asia/Tokyo"}
    del written[JAVA]
    assert found == {**written, **changed, "spark.sql.ansi.enabled": "false"}
