"""One Spark session for the whole suite, made as the adapter makes it."""

from __future__ import annotations

import atexit
import logging
import math
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.logical.explain import explain
from dbt_incremental_dd.runtime import costs
from tests.connect import connect_server
from tests.engines import IN_SPARK
from tests.logical.cross_products import untied
from tests.short_lived import SHORT_LIVED
from tests.turns import PARTS, TURN, Recorder, in_turn, long_tests, of_other_turns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt_incremental_dd.logical.node import Node
    from dbt_incremental_dd.relation.lazy_session import LazySession
    from dbt_incremental_dd.trace.layout import Storage

__all__ = ["connect_server"]

# What py4j tells when a session ends comes after the streams that Airflow's logging writes to are closed.
logging.getLogger("py4j").setLevel(logging.ERROR)


class _Mistakes(logging.Handler):
    """What is a warning for users, because Spark takes over, fails a test."""

    def emit(self, record: logging.LogRecord) -> None:
        raise AssertionError(record.getMessage())


logging.getLogger("dbt_incremental_dd.local.value").addHandler(_Mistakes(logging.WARNING))
# How long an example takes says more of what runs beside it than of the code.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")
os.environ.setdefault("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
# Of a user's cache nothing is seen, and nothing is left there; processes that tests start have the same one.
if "DBT_DD_CACHE" not in os.environ:
    os.environ["DBT_DD_CACHE"] = tempfile.mkdtemp(prefix="dd-cache-")
    atexit.register(shutil.rmtree, os.environ["DBT_DD_CACHE"], ignore_errors=True)
# In UTC a time of day is the same in whatever zone it is taken to be.
os.environ.setdefault("TZ", "America/New_York")
time.tzset()

SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    # Delta's VACUUM makes so many tasks, of a few files: 10,000.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    # Code would be generated and compiled for a few rows each time.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # A heap that suits two processes on a small machine.
    "spark.driver.memory": "3g",
    # Without these sizes, full collections start while the heap is nearly empty.
    "spark.driver.extraJavaOptions": f"{SHORT_LIVED} -XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=400m -Xmn1g",
    # Each aggregation takes a page, of 64 MB with this heap.
    "spark.buffer.pageSize": "1m",
    # There is nothing to adapt in a few rows, and nobody looks at what has been run.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.ui.retainedExecutions": "5",
}


LONGEST = (
    "engine/test_fixtures_in_spark.py",
    "dbt/test_without_session.py",
    "dbt/test_first_run.py",
    "frontend/test_meaning.py",
    "engine/test_fixtures.py",
    "recursion/test_changes.py",
    "dbt/test_project.py",
    "engine/test_replaced.py",
    "dbt/test_switching.py",
    "dbt/test_processes.py",
    "engine/test_kept_session.py",
    "faults/test_kills.py",
    "engine/test_runs.py",
    "recursion/test_sparks_own.py",
    "faults/test_damage.py",
    "dbt/test_kept_session.py",
    "projects/test_projects.py",
    "engine/test_versions.py",
    "engine/test_growth.py",
    "dbt/test_features.py",
    "engine/test_forgetting.py",
    "faults/test_bad_input.py",
    "dbt/test_standard_configs.py",
    "faults/test_hostile_storage.py",
)
"""Files that take a minute and more, the longest first: what begins last is what one process is left alone with."""


def pytest_configure(config: pytest.Config) -> None:
    """``DD_SECONDS`` has the long tests recorded."""
    if os.environ.get("DD_SECONDS") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files are begun by their length. In a turn of CI, long tests of other turns are left out, and told as
    deselected."""
    if TURN:
        others = of_other_turns((item.nodeid for item in items), long_tests(), in_turn(PARTS))
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in others])
        items[:] = [item for item in items if item.nodeid not in others]
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get("/".join(item.path.parts[-2:]), len(LONGEST)))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Local, small, quiet; metastore and warehouse in a folder of their own."""
    from dbt_incremental_dd.runtime.session import open_session

    root: Path = tmp_path_factory.mktemp("spark")
    session = open_session(str(root), SETTINGS)
    forget_defaults(session)
    yield session
    session.stop()


def forget_defaults(session: SparkSession) -> None:
    """Spark sends Hadoop's settings along with each scan and write, over 1,100 of them: a fifth of what a small job
    takes. All but a few are in files of defaults, and as Hadoop's code has them too."""
    settings = session.sparkContext._jsc.hadoopConfiguration()  # nothing public leads there
    for name in [setting.getKey() for setting in settings.iterator()]:
        sources = settings.getPropertySources(name) or ()
        is_file_system = name.startswith("fs.") and name.endswith(".impl")  # whose class is known by this alone
        if all(source.endswith("-default.xml") for source in sources) and not is_file_system:
            settings.unset(name)


@pytest.fixture
def in_spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[Thresholds]:
    """What to give to a storage so that nothing is computed on the driver. From here on all that the test computes has
    to be computed so."""
    from dbt_incremental_dd.relation.workspace import Workspace

    made: list[Thresholds] = []
    begin = Workspace.__init__

    def noted(self: Workspace, session: LazySession, storage: Storage, *given: Any) -> None:
        made.append(storage.thresholds)
        begin(self, session, storage, *given)

    monkeypatch.setattr(Workspace, "__init__", noted)
    yield IN_SPARK
    assert set(made) == {IN_SPARK}


@pytest.fixture(scope="session", autouse=True)
def small_deltas_are_kept() -> None:
    """Whether a run is one by deltas must not depend on how busy the machine is."""
    costs.QUICK_SECONDS = math.inf


@pytest.fixture(scope="session", autouse=True)
def no_cross_products() -> Iterator[None]:
    """No plan that any test compiles has a cross product that an equality of its query ties."""

    from dbt_incremental_dd.runtime import compile

    def guarded(lowered: Node) -> Node:
        plan = optimize(lowered)
        found = untied(plan, lowered)
        assert not found, "\n".join([*found, explain(plan)])
        return plan

    optimize = compile.optimize
    compile.optimize = guarded
    yield
    compile.optimize = optimize
