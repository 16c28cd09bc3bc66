"""An example project on a cluster, in a process of its own: rounds of changes, each verified.

python -m tests.cluster.rounds FOLDER PROJECT ROUNDS SIZE: FOLDER holds the project, with a profile that names the
cluster and the store, and with its sources in the store. Data is written below FOLDER/data and uploaded from there.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

from dbt_incremental_dd.runtime import costs


def main(folder: Path, project: str, rounds: int, size: int) -> None:
    """A line of JSON for each round: which models were exact, and what strategies brought them there."""
    costs.QUICK_SECONDS = math.inf  # a small change over a cluster is soonest done by Spark's own query
    feed = importlib.import_module(f"example_project.{project}.feed").Feed(folder / "data", size)
    feed.start()
    for number in range(rounds + 1):
        if number:
            feed.advance(number)
        _upload(folder / "data", f"{os.environ['DATA']}")
        if not number:
            _dbt(folder, "seed")
        ran = _dbt(folder, "run")
        strategies = {one.node.alias: one.adapter_response.get("strategy") for one in ran}
        found = _verified(folder)
        print(json.dumps({"round": number, "strategies": strategies, "exact": found}), flush=True)


def _upload(folder: Path, target: str) -> None:
    """Files that the store does not have, or has otherwise."""
    from dbt_incremental_dd.storage.filesystems import filesystem_of

    store, root = filesystem_of(target, {})
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = f"{root}/{path.relative_to(folder)}"
        data = path.read_bytes()
        if store.get_file_info(name).size != len(data):
            with store.open_output_stream(name) as out:
                out.write(data)


def _dbt(folder: Path, command: str) -> Any:
    from dbt.cli.main import dbtRunner

    where = ["--project-dir", str(folder), "--profiles-dir", str(folder), "--log-path", str(folder / "logs")]
    result = dbtRunner().invoke([command, "--quiet", "--no-send-anonymous-usage-stats", *where])
    assert result.success, result.exception or [one.message for one in result.result or ()]
    return result.result


def _verified(folder: Path) -> dict[str, bool]:
    from dbt.adapters.factory import get_adapter_by_type

    from dbt_incremental_dd.runtime.verify import verify

    adapter = get_adapter_by_type("differential")
    found = verify(adapter.connections.session().spark, adapter._storage(), None)
    return {one.model: one.exact for one in found}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
