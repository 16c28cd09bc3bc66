"""astronomer-cosmos runs a differential project."""

from __future__ import annotations

import pytest

import dbt_incremental_dd
from tests.airflow.running import Running, contents

pytestmark = pytest.mark.airflow


def test_payments_by_cosmos_are_those_of_the_group(running: Running) -> None:
    airflow = running.airflow
    airflow.unpause("payments_with_cosmos")
    for _ in range(2):
        run = airflow.trigger("payments_with_cosmos")
        airflow.wait("payments_with_cosmos", run)
        running.feed("payments")
    tasks = {
        task["task_id"]
        for task in airflow.get(f"dags/payments_with_cosmos/dagRuns/{run}/taskInstances")["task_instances"]
    }
    assert any("captured_by_merchant" in task for task in tasks) and len(tasks) >= 4
    found = dbt_incremental_dd.open(str(running.examples / "payments" / "state" / "cosmos"))
    captured, regions = found["payments_by_cosmos.captured_by_merchant"], found["payments_by_cosmos.regions"]
    assert captured.frontiers == regions.frontiers and captured.status().change["strategy"] in ("delta", "recompute")
    assert contents(captured.as_of())
