"""``keep_session``: dbt's commands and ``dbt-dd`` share a session that outlives them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dbt_incremental_dd.core.file_lock import IS_POSSIBLE
from tests.dbt.project import Project
from tests.fork_server import fork_server

_BIN = Path(sys.executable).parent
SOURCES = """
version: 2
sources:
  - name: shop
    tables:
      - name: orders
        columns:
          - {name: id, data_type: int, data_tests: [unique, not_null]}
          - {name: region, data_type: int}
          - {name: amount, data_type: "decimal(12,2)"}
        config: {meta: {differential: {envelope: append, path: orders, format: json}}}
models:
  - name: totals
    columns:
      - {name: title, data_tests: [unique]}
"""
TOTALS = """select r.title, sum(o.amount) as amount, max(o.id) as latest
    from {{ source('shop', 'orders') }} o join {{ ref('regions') }} r on r.region = o.region group by r.title"""


class Shop:
    """A project that keeps its session, and commands in processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.project = Project(folder, keep_session="10 minutes")
        self.folder = folder
        self.project.write("models/sources.yml", SOURCES)
        self.project.write("seeds/regions.csv", "region,title\n1,North\n2,South\n")
        self.project.write("models/totals.sql", TOTALS)
        self.project.write("models/plain.sql", "{{ config(materialized='table') }} select * from {{ ref('totals') }}")

    def arrive(self, id: int) -> None:
        """A file with an order."""
        self.project.records(f"orders/{id}.json", [{"id": id, "region": id % 2 + 1, "amount": id}])

    def start(self, *command: str) -> subprocess.Popen[str]:
        """``dbt`` or ``dbt-dd`` with arguments, in the project, beside others."""
        call = [str(_BIN / command[0]), *command[1:], *self._folders]
        return subprocess.Popen(call, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, *command: str) -> str:
        """The output of one that must succeed."""
        return fork_server().run([*command, *self._folders], os.environ, self.folder)

    @property
    def _folders(self) -> tuple[str, ...]:
        return "--project-dir", str(self.folder), "--profiles-dir", str(self.folder)


def done(process: subprocess.Popen[str]) -> str:
    """The output of a process that must succeed."""
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    return output


@pytest.mark.skipif(not IS_POSSIBLE, reason="no session is kept on this system")
def test_commands_share_a_session(tmp_path: Path) -> None:
    """Builds, tests, a table beside models, ``verify``; two commands at once. Runs that ask Spark for nothing do not use
    it, with the catalog as the others have left it."""
    shop = Shop(tmp_path)
    kept = tmp_path / ".dbt_incremental_dd" / "kept-session.json"
    assert "no session is kept" in shop.run("dbt-dd", "end-session")
    try:
        shop.arrive(1)
        shop.run("dbt", "build")
        written = kept.read_text()
        assert os.stat(kept).st_mode & 0o077 == 0, "the secret is for this user alone"
        shop.arrive(2)
        for process in [shop.start("dbt", "build"), shop.start("dbt-dd", "verify")]:
            done(process)
        shop.arrive(3)
        shop.run("dbt", "run")
        assert "exact" in shop.run("dbt-dd", "verify")
        shown = shop.run("dbt", "show", "--output", "json", "--inline", "select * from {{ ref('plain') }}")
        rows = {
            row["title"]: (float(row["amount"]), row["latest"]) for row in json.loads(shown[shown.index("{") :])["show"]
        }
        assert rows == {"North": (2, 2), "South": (4, 3)}
        assert kept.read_text() == written
        shop.run("dbt", "run", "--select", "totals")  # the seed's table has been made since it was looked at
        assert "Spark's session is opened by" not in shop.run("dbt", "--debug", "run", "--select", "totals")
    finally:
        assert "ends its session" in shop.run("dbt-dd", "end-session")
    assert not kept.exists()
