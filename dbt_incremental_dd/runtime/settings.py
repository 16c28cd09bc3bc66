"""The settings of a new local session: the profile's, and defaults of ours where the user has set nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.relation.lazy_session import TIME_ZONE
from dbt_incremental_dd.runtime.time_zone import default_time_zone
from dbt_incremental_dd.runtime.user_spark import UserSpark
from dbt_incremental_dd.storage.uris import is_remote, spark_uri

REQUIRED = {
    # dbt-spark sets it for every statement, whatever else is set.
    "spark.sql.ansi.enabled": "false",
    # In another form not every reader has the timestamps that were written.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""What exactness needs: it comes before all that is set elsewhere."""
_QUIET = "log4j2-quiet.properties"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_OUT_OF_MEMORY = "-XX:+ExitOnOutOfMemoryError"
"""A JVM that goes on without the thread that had no memory may leave whoever asks it waiting for ever."""
_FEWER_COMPILED = {
    "Tier4InvocationThreshold": 150_000,
    "Tier4MinInvocationThreshold": 18_000,
    "Tier4CompileThreshold": 450_000,
    "Tier4BackEdgeThreshold": 1_200_000,
}
"""When HotSpot's optimizing compiler takes a method on: after thirty times as many calls and loops as by default.
Opening a session calls thousands of methods a little more often than the default asks for, and to compile those takes
as long as all else. A load over millions of rows is past these numbers at once."""
_WAREHOUSE = "spark.sql.warehouse.dir"
_METASTORE = "spark.hadoop.javax.jdo.option.ConnectionURL"
_RETRIES = {"spark.hadoop.hive.hmshandler.retry.interval": "20ms"}
"""Of Derby in this process. What its database refuses Hive tries ten times, two seconds apart: also a comment of more
than 256 characters, which Spark then keeps in another way."""
_METASTORES = (
    _METASTORE,
    "spark.hive.metastore.uris",
    "spark.hadoop.hive.metastore.uris",
    "spark.hive.metastore.client.factory.class",
    "spark.hadoop.hive.metastore.client.factory.class",
)
"""Each of them says that the metastore is the user's own."""


def session_settings(
    root: str, settings: Mapping[str, str], hadoop: Mapping[str, str], user: UserSpark
) -> dict[str, str]:
    """What to give to Spark. ``settings`` are the profile's, ``hadoop`` those by which Hadoop reaches the state root;
    what is not given here is as the user's Spark has it."""
    both = {**user.settings, **settings}
    defaults = {**{f"spark.hadoop.{name}": value for name, value in hadoop.items()}, **_defaults(root, both, user)}
    ours = {name: value for name, value in defaults.items() if name not in user.settings}
    java = {JAVA_OPTIONS: _java_options(local_folder(root), both.get(JAVA_OPTIONS, ""), user)}
    return {**ours, **settings, **java, **REQUIRED}


def own_metastore(root: str, settings: Mapping[str, str], user: UserSpark) -> str | None:
    """The folder of the Derby metastore that is used; None if the user has another metastore.

    It is in the state root. Where it has never been made, but a project has one that Spark makes for `type: spark`
    (``metastore_db`` beside ``dbt_project.yml``), that one stays in use, so that the project keeps its tables.
    """
    if user.hive_site is not None or any(name in settings or name in user.settings for name in _METASTORES):
        return None
    local = local_folder(root)
    ours = f"{local}/metastore_db"
    former = _former_metastore(local)
    return former if former is not None and not os.path.exists(ours) else ours


def is_under_root(metastore: str, root: str) -> bool:
    """Whether the metastore is ours: not one that Spark has made beside the project, which others may open."""
    return metastore == f"{local_folder(root)}/metastore_db"


def _former_metastore(local: str) -> str | None:
    for folder in (Path(local).parent, Path.cwd()):
        if (folder / "metastore_db" / "service.properties").exists() and (folder / "dbt_project.yml").exists():
            return str(folder / "metastore_db")
    return None


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


def _java_options(local: str, given: str, user: UserSpark) -> str:
    """Ours, and behind them the user's: of two options for one thing the last one holds."""
    quiet = f"-Dlog4j2.configurationFile={files('dbt_incremental_dd.runtime').joinpath(_QUIET)}"
    compiled = [f"-XX:{name}={number}" for name, number in _FEWER_COMPILED.items()]
    derby = f"-Dderby.stream.error.file={local}/derby.log"
    options = ["" if user.has_logging else quiet, _OUT_OF_MEMORY, *compiled, derby, given]
    return " ".join(option for option in options if option)


def _defaults(root: str, settings: Mapping[str, str], user: UserSpark) -> dict[str, str]:
    cores = os.cpu_count() or 2
    master = settings.get("spark.master") or os.environ.get("SPARK_MASTER", f"local[{cores}]")
    zone = default_time_zone(settings, os.environ)
    defaults = {
        "spark.master": master,
        "spark.app.name": "dbt-incremental-dd",
        "spark.driver.memory": f"{_driver_memory()}m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Larger tables from the driver stay in Arrow until a task reads them; as local relations they become rows at
        # once, and a part of each task.
        "spark.sql.execution.arrow.localRelationThreshold": "64KB",
        **({} if zone is None else {TIME_ZONE: zone}),
        # Noting the Python line of every column expression costs more calls than building it.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        **_places(root, settings, user),
    }
    if not is_remote(root):
        # Files are named one by one: a job that looks at them takes longer than looking.
        defaults["spark.sql.sources.parallelPartitionDiscovery.threshold"] = "10000"
    if master.startswith("local"):
        defaults["spark.sql.shuffle.partitions"] = str(max(cores, 2))
    return defaults


def _places(root: str, settings: Mapping[str, str], user: UserSpark) -> dict[str, str]:
    """Where the metastore and the warehouse are."""
    local, metastore = local_folder(root), own_metastore(root, settings, user)
    places = {}
    if metastore is not None:
        places = {_METASTORE: f"jdbc:derby:;databaseName={metastore};create=true", **_RETRIES}
    if "hive.metastore.warehouse.dir" in (user.hive_site or ()):
        return places
    if is_remote(root):  # tables that dbt makes itself, seeds among them, are written by workers
        return {**places, _WAREHOUSE: spark_uri(f"{root}/warehouse")}
    if metastore is not None and metastore != f"{local}/metastore_db":
        return {**places, _WAREHOUSE: f"{os.path.dirname(metastore)}/spark-warehouse"}
    return {**places, _WAREHOUSE: f"{local}/warehouse"}


def _driver_memory() -> int:
    """MiB: two fifths of the machine's memory, from 1 to 8 GiB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (1 << 20)
    return max(1024, min(8192, total * 2 // 5))
