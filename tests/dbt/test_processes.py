"""What takes a process of its own: reading without a JVM, and Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import yaml

from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.types import LONG

_BIN = Path(sys.executable).parent
TEXT_SOURCES = """
version: 2
sources:
  - name: text
    tables:
      - name: lines
        columns: [{name: k, data_type: int}, {name: v, data_type: double}]
        config: {meta: {differential: {envelope: append, path: lines.json, format: json}}}
      - name: records
        columns: [{name: k, data_type: int}, {name: v, data_type: double}]
        config: {meta: {differential: {envelope: append, path: records, format: json, options: {allowComments: true}}}}
      - name: fields
        columns: [{name: k, data_type: int}, {name: v, data_type: double}]
        config: {meta: {differential: {envelope: upsert, key: k, path: fields, format: csv}}}
"""


def test_reading_starts_no_jvm(tmp_path: Path) -> None:
    """``dbt-dd status`` and ``.frontiers`` work where there is no Java at all, and import no pyspark."""
    from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
    from dbt_incremental_dd.trace.commit import Commit
    from dbt_incremental_dd.trace.layout import Storage

    place = Storage(str(tmp_path)).collection("s.m")
    schema = Schema((Column("k", LONG),))
    log = place.create(Schema((*schema.columns, TIME_COLUMN, DIFF_COLUMN)))
    log.commit(Commit(upper=5, manifest=place.write_manifest(ModelManifest(schema=schema))))
    environment = {**os.environ, "PATH": "/nowhere", "JAVA_HOME": "/nowhere"}
    status = subprocess.run(
        [_BIN / "dbt-dd", "--state-root", tmp_path, "status"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "s.m" in status.stdout and "1970-01-01 00:00:00.004" in status.stdout
    code = (
        "import sys, dbt_incremental_dd as dd; assert 'deltalake' not in sys.modules;"
        f"print(dd.open({str(tmp_path)!r})['s.m'].frontiers); assert 'pyspark' not in sys.modules"
    )
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "Frontiers(since=0, upper=5)"


def test_example_runs_under_spark_connect(tmp_path: Path, connect_server: str) -> None:
    """The clickstream example: first state and one more file, exact both times. Beside it sources of text, which Spark
    reads through expressions of ours, with options and without."""
    import shutil

    from example_project.clickstream.feed import Feed

    example = Path(__file__).parents[2] / "example_project" / "clickstream"
    folder = tmp_path / "clickstream"
    shutil.copytree(example, folder, ignore=shutil.ignore_patterns("data", "target", "logs", ".dbt*", "__pycache__"))
    feed = Feed(folder / "data", 300)
    feed.start()
    (folder / "models" / "text.yml").write_text(TEXT_SOURCES)
    for name in ("lines", "records", "fields"):
        sql = f"select k, sum(v) as v from {{{{ source('text', '{name}') }}}} group by k"
        (folder / "models" / f"of_{name}.sql").write_text(sql)
    (folder / "records").mkdir()
    (folder / "fields").mkdir()
    environment = {**os.environ, "SPARK_REMOTE": connect_server}
    for round in range(2):
        if round == 1:  # the profile may name the server, too
            del environment["SPARK_REMOTE"]
            profiles = yaml.safe_load((folder / "profiles.yml").read_text())
            profiles["clickstream"]["outputs"]["dev"]["server_side_parameters"] = {"spark.remote": connect_server}
            (folder / "profiles.yml").write_text(yaml.safe_dump(profiles))
        with (folder / "lines.json").open("a") as lines:
            lines.write('{"k": 1, "v": 1e40}\n{"k": 2, "v": null}\n')
        (folder / "records" / f"{round}.json").write_text('{"k": 1, "v": 2.5} // all of it\n')
        (folder / "fields" / f"{round}.csv").write_text(f'1,{round}\n"{round + 2}",1e30\n')
        for command in ([str(_BIN / "dbt"), "run", "--profiles-dir", "."], [str(_BIN / "dbt-dd"), "verify"]):
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)
            assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("exact") == 6
        feed.advance(round + 1)
