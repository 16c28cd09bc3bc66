"""The Spark session: the user's own where there is one, else a quiet local one whose files lie under the state root."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.foreign import is_foreign, reason
from dbt_incremental_dd.runtime.java import require_java, starting
from dbt_incremental_dd.runtime.metastore import wait_for
from dbt_incremental_dd.trace.object_store import MISSING_CLASS, hadoop_settings, is_remote, spark_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUIET = "log4j2-quiet.properties"
_MEANING = {"spark.sql.ansi.enabled": "false"}
"""What SQL means: dbt-spark sets it for every run."""
_READING = {"parquet.page.verify-checksum.enabled": "true"}
"""Hadoop's setting: a page that is not what was written is an error, and not rows."""
_METASTORE = "spark.hadoop.javax.jdo.option.ConnectionURL"
_REACHED: set[str] = set()
"""State roots in object storage that this process's Spark has reached."""


def open_session(root: str, settings: Mapping[str, str], options: Mapping[str, str] | None = None) -> SparkSession:
    """The process's session; ``settings`` are the user's and come before the defaults, ``options`` the storage's.

    Raises SessionError where Spark does not start, StateError where it cannot reach the state root.
    """
    spark = _open(root, settings, {**_READING, **hadoop_settings(root, options or {})})
    if root not in _REACHED and urlsplit(root).scheme == "s3":
        _require_reached(spark, root)
        _REACHED.add(root)
    return spark


def _open(root: str, settings: Mapping[str, str], hadoop: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    _quiet()
    if is_connect():
        # dbt-spark asks for Hive support with every statement, which a server does not take.
        warnings.filterwarnings("ignore", message="Failed to set spark.sql.catalogImplementation")
        # A server's own configuration is made before: what is told to it holds for this session.
        return _configured(SparkSession.builder, {**_MEANING, **hadoop, **settings}).getOrCreate()
    require_java()
    given = {**{f"spark.hadoop.{name}": value for name, value in hadoop.items()}, **settings}
    builder = _configured(SparkSession.builder, _local(root, given))
    if _METASTORE not in settings and SparkSession.getActiveSession() is None:
        wait_for(f"{local_folder(root)}/metastore_db", lambda line: print(line, file=sys.stderr))
    log = f"{local_folder(root)}/spark.log"
    with starting(log), _stderr_to(log):
        return builder.enableHiveSupport().getOrCreate()


def _require_reached(spark: SparkSession, root: str) -> None:
    """By a path at which there is nothing; no job is run."""
    from pyspark.errors import AnalysisException

    try:
        spark.read.parquet(spark_uri(f"{root}/scratch/nothing-is-here"))
    except Exception as error:
        if MISSING_CLASS in str(error):
            raise StateError(
                f"Spark cannot reach state_root {root}: {MISSING_CLASS} is not on its class path",
                "Set spark.jars.packages to org.apache.hadoop:hadoop-aws:<the version of Spark's hadoop-client> among "
                "the profile's server_side_parameters, or on the Spark Connect server.",
            ) from error
        if not isinstance(error, AnalysisException) and is_foreign(error):
            remedy = "Check `storage_options` and that Spark's machines can reach the store."
            raise StateError(f"Spark cannot reach state_root {root}: {reason(error)}", remedy) from error


def _quiet() -> None:
    """Errors that are raised need no log besides; compiling a query tries parts of it that Spark may refuse."""
    from pyspark.logger import PySparkLogger

    logging.getLogger("pyspark").setLevel(logging.ERROR)
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    PySparkLogger.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)


@contextmanager
def _stderr_to(path: str) -> Iterator[None]:
    """What is started meanwhile writes its standard error to a file: a JVM keeps it for all its life."""
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with open(path, "ab") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def local_folder(root: str) -> str:
    """A local folder for the metastore, the warehouse and logs: the state root itself where it is local.

    Raises StateError where it cannot be written.
    """
    local = root if not is_remote(root) else os.path.join(os.getcwd(), ".dbt_incremental_dd")
    try:
        os.makedirs(local, exist_ok=True)
        writable = os.access(local, os.W_OK)
        reason = "permission denied"
    except OSError as error:
        writable, reason = False, str(error)
    if not writable:
        raise StateError(
            f"state_root {root} cannot be written: {reason}",
            "Give a folder that this user may write, as `state_root` in the profile.",
        )
    return local


def is_connect() -> bool:
    """Whether the session is one of Spark Connect."""
    return bool(os.environ.get("SPARK_REMOTE") or os.environ.get("SPARK_CONNECT_MODE_ENABLED"))


def _configured(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


def _local(root: str, settings: Mapping[str, str]) -> dict[str, str]:
    """What a session of this process's own needs besides: defaults where the user has set nothing."""
    local = local_folder(root)
    options = [
        f"-Dlog4j2.configurationFile={files('dbt_incremental_dd.runtime').joinpath(_QUIET)}",
        f"-Dderby.stream.error.file={local}/derby.log",
        settings.get("spark.driver.extraJavaOptions", ""),
    ]
    java = {"spark.driver.extraJavaOptions": " ".join(option for option in options if option)}
    return {**_defaults(root, local, settings), **settings, **java}


def _defaults(root: str, local: str, settings: Mapping[str, str]) -> dict[str, str]:
    cores = os.cpu_count() or 2
    master = settings.get("spark.master") or os.environ.get("SPARK_MASTER", f"local[{cores}]")
    defaults = _common(local, master)
    if not is_remote(root):
        # Files are named one by one: a job that looks at them takes longer than looking.
        defaults["spark.sql.sources.parallelPartitionDiscovery.threshold"] = "10000"
        defaults["spark.sql.warehouse.dir"] = f"{local}/warehouse"
    else:  # tables that dbt makes itself, seeds among them, are written by workers
        defaults["spark.sql.warehouse.dir"] = spark_uri(f"{root}/warehouse")
    if master.startswith("local"):
        defaults["spark.sql.shuffle.partitions"] = str(max(cores, 2))
    return defaults


def _common(local: str, master: str) -> dict[str, str]:
    metastore = f"jdbc:derby:;databaseName={local}/metastore_db;create=true"
    return {
        "spark.master": master,
        "spark.app.name": "dbt-incremental-dd",
        "spark.driver.memory": f"{_driver_memory()}m",
        _METASTORE: metastore,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        **_MEANING,
        # Larger tables from the driver stay in Arrow until a task reads them; as local relations they become rows at
        # once, and a part of each task.
        "spark.sql.execution.arrow.localRelationThreshold": "64KB",
        # Noting the Python line of every column expression costs more calls than building it.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }


def _driver_memory() -> int:
    """MiB: two fifths of the machine's memory, from 1 to 8 GiB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (1 << 20)
    return max(1024, min(8192, total * 2 // 5))
