"""Example projects moved to a cluster: another profile, and sources in the store."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.servers.s3 import S3

ROOT = Path(__file__).parents[2]


class Moved:
    """A copy of an example project, with its data and its state in the store."""

    def __init__(
        self, name: str, folder: Path, s3: S3, settings: Mapping[str, str], label: str = "", engine: str = "auto"
    ) -> None:
        self.name = name
        self.folder = folder / (label or name)
        self.root = f"{s3.root}/{label or name}/state"
        self._s3 = s3
        self._data = f"{s3.root}/{label or name}/data"
        generated = shutil.ignore_patterns("data", ".dbt_incremental_dd", "target", "logs", "state", "__pycache__")
        shutil.copytree(ROOT / "example_project" / name, self.folder, ignore=generated)
        for path in self.folder.glob("models/*.yml"):
            path.write_text(path.read_text().replace("path: data/", f"path: {self._data}/"))
        output = {
            "type": "differential",
            "schema": name,
            "threads": 2,
            "state_root": self.root,
            "storage_options": s3.options,
            "server_side_parameters": dict(settings),
            "engine": engine,
        }
        profile = {name: {"target": "cluster", "outputs": {"cluster": output}}}
        (self.folder / "profiles.yml").write_text(json.dumps(profile))

    def start(self, rounds: int, size: int, more: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """The rounds, under way in a process of their own."""
        command = [sys.executable, "-m", "tests.cluster.rounds", str(self.folder), self.name, str(rounds), str(size)]
        environment = {**os.environ, **self._s3.options, "DATA": self._data, "PYTHONPATH": str(ROOT), **(more or {})}
        environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
        return subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def rounds(self, rounds: int, size: int, more: Mapping[str, str] | None = None) -> list[dict[str, dict[str, str]]]:
        """What each round came to."""
        process = self.start(rounds, size, more)
        told, _ = process.communicate(timeout=500)
        assert process.returncode == 0, told[-6000:]
        assert self._s3.secret not in told
        self._require_secret_kept()
        return [json.loads(line) for line in told.splitlines() if line.startswith('{"round"')]

    def _require_secret_kept(self) -> None:
        """Nothing that was written, here or in the store, has the credentials; but for the profile itself."""
        written = [path for folder in (self.folder, self._s3.folder) for path in folder.rglob("*") if path.is_file()]
        holding = [path.name for path in written if self._s3.secret.encode() in path.read_bytes()]
        assert holding == ["profiles.yml"] * len(holding), holding


def require_exact(told: list[dict[str, dict[str, str]]], rounds: int) -> None:
    """Every model in every round."""
    assert len(told) == rounds + 1
    for one in told:
        assert one["exact"] and all(one["exact"].values()), one


def require_deltas(told: list[dict[str, dict[str, str]]]) -> None:
    """Changes after the first round came in by deltas."""
    assert all("delta" in one["strategies"].values() for one in told[1:]), told
