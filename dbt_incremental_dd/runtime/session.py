"""The Spark session: the user's own where there is one, else a quiet local one whose files lie under the state root."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from traceback import extract_stack
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.foreign import is_foreign, reason
from dbt_incremental_dd.relation.due import DueRelations
from dbt_incremental_dd.relation.lazy_session import LazySession, SessionMemory, expected_settings
from dbt_incremental_dd.runtime.class_archive import remove_mapped, with_archive
from dbt_incremental_dd.runtime.java import require_java, starting
from dbt_incremental_dd.runtime.kept_session import TOKEN, Wanted, configuration_of, join, let_go
from dbt_incremental_dd.runtime.literal_query import literal_rows
from dbt_incremental_dd.runtime.metastore import wait_for
from dbt_incremental_dd.runtime.publication import publish_due
from dbt_incremental_dd.runtime.session_memory import StoredMemory
from dbt_incremental_dd.runtime.settings import REQUIRED, is_under_root, local_folder, own_metastore, session_settings
from dbt_incremental_dd.runtime.user_spark import UserSpark, user_spark
from dbt_incremental_dd.storage.uris import hadoop_settings, is_remote, missing_package, spark_uri
from dbt_incremental_dd.trace.layout import open_storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_READING = {"parquet.page.verify-checksum.enabled": "true"}
"""Hadoop's setting: a page that is not what was written is an error, and not rows."""
_REMOTE = "spark.remote"
_PASSING = ("session.py", "lazy_session.py")
"""Modules that ask for the session only because somebody else does."""
_ENVIRONMENT = ("TZ", "JAVA_HOME", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "SPARK_HOME", "SPARK_SUBMIT_OPTS")
"""Variables on which a session's settings depend, its time zone for one."""
_NO_JVM = "JAVA_GATEWAY_EXITED"
_REACHED: set[str] = set()
"""State roots in object storage that this process's Spark has reached."""


def open_session(
    root: str, settings: Mapping[str, str], options: Mapping[str, str] | None = None, keep: float = 0.0
) -> SparkSession:
    """The process's session; ``settings`` are the profile's, ``options`` the storage's.

    A session that is there already keeps all that is set in it, but for these and for REQUIRED. A new one has our
    defaults as well, where neither the profile nor the user's own Spark sets anything. With ``keep`` it is one of a
    process that keeps it, until nobody has used it for so many seconds. Raises SessionError if Spark does not start,
    StateError if it cannot reach the state root.
    """
    spark = _open(root, settings, options or {}, keep)
    if root not in _REACHED and is_remote(root):
        _require_reached(spark, root)
        _REACHED.add(root)
    return spark


def lazy_session(
    root: str,
    settings: Mapping[str, str],
    options: Mapping[str, str] | None = None,
    tell: Callable[[str], None] = lambda line: None,
    keep: float = 0.0,
) -> LazySession:
    """The same, opened when it is first needed; ``tell`` hears by what."""

    def opened() -> SparkSession:
        if not _is_open():
            tell(f"Spark's session is opened by {asked_by() or 'the start of the command'}")
        return open_session(root, settings, options, keep)

    if _is_open():
        return LazySession.of(opened())
    storage = open_storage(root, options or {})

    def settle(session: LazySession) -> None:
        publish_due(session, storage, tell)

    return LazySession(opened, _memory(root, settings, options or {}, keep), settle, literal_rows)


def is_usable(session: LazySession) -> bool:
    """Whether it can be asked: not if it was open, and somebody has stopped it since."""
    return not session.is_open or _is_open()


def _memory(root: str, settings: Mapping[str, str], options: Mapping[str, str], keep: float) -> SessionMemory:
    """What is known of a session that this process would have in a JVM of its own, or in a kept one."""
    if not _is_own(settings):
        return SessionMemory()
    user = user_spark(os.environ)
    metastore = own_metastore(root, settings, user)
    due = DueRelations(f"{metastore}.due") if metastore is not None and is_under_root(metastore, root) else None
    configuration = _configuration(root, settings, options, user)
    expected = expected_settings(_spark_settings(root, settings, options, user))
    return StoredMemory(open_storage(root, options), configuration, metastore, expected, due, is_shared=keep > 0)


def _configuration(
    root: str, settings: Mapping[str, str], options: Mapping[str, str], user: UserSpark
) -> dict[str, object]:
    """All that a session of this process in a JVM of its own follows from."""
    environment = {name: os.environ.get(name, "") for name in _ENVIRONMENT}
    places = {"zone": os.path.realpath("/etc/localtime"), "hive-site": sorted(user.hive_site or ())}
    return {**_spark_settings(root, settings, options, user), **environment, **places, "pyspark": version("pyspark")}


def _spark_settings(
    root: str, settings: Mapping[str, str], options: Mapping[str, str], user: UserSpark
) -> dict[str, str]:
    return {**user.settings, **session_settings(root, settings, hadoop_settings(root, options), user)}


def asked_by() -> str:
    """The innermost functions of this package that ask for the session, below those that only pass it on."""
    package = Path(__file__).parents[1]
    frames = [frame for frame in extract_stack() if Path(frame.filename).is_relative_to(package)]
    paths = [(Path(frame.filename).relative_to(package), frame.name) for frame in frames]
    told = [f"{path.with_suffix('')}.{name}" for path, name in paths if path.name not in _PASSING]
    return " > ".join(told[-4:])


def _open(root: str, settings: Mapping[str, str], options: Mapping[str, str], keep: float) -> SparkSession:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    _quiet()
    hadoop = {**_READING, **hadoop_settings(root, options)}
    if _REMOTE in settings:  # pyspark looks there, too, where somebody asks for the session without its address
        os.environ.setdefault("SPARK_REMOTE", settings[_REMOTE])
    if is_connect() or keep:
        # dbt-spark asks for Hive support with every statement, which a server does not take.
        warnings.filterwarnings("ignore", message="Failed to set spark.sql.catalogImplementation")
    if is_connect() or _is_open():
        # It was configured where it was made; this holds for what is read and written from now on.
        return _configured(SparkSession.builder, {**hadoop, **settings, **REQUIRED}).getOrCreate()
    require_java()
    user = user_spark(os.environ)
    metastore = own_metastore(root, settings, user)
    if keep and _is_own(settings):
        configuration = configuration_of(_configuration(root, settings, options, user), keep)
        return _use(Wanted(local_folder(root), root, settings, options, keep, metastore, configuration))
    if metastore is not None:
        let_go(local_folder(root))
        wait_for(metastore, _tell)
    given = session_settings(root, settings, hadoop, user)
    archived = with_archive(given, user, os.environ)
    log = f"{local_folder(root)}/spark.log"
    with starting(log), _stderr_to(log):
        try:
            return _started(archived)
        except PySparkRuntimeError as error:
            if error.getCondition() != _NO_JVM or not remove_mapped(archived):
                raise
            return _started(given)


def _started(settings: Mapping[str, str]) -> SparkSession:
    """The session of a new JVM."""
    from pyspark.sql import SparkSession

    return _configured(SparkSession.builder, settings).enableHiveSupport().getOrCreate()


def _use(wanted: Wanted) -> SparkSession:
    """A session of this process in the JVM that is kept."""
    from pyspark.sql import SparkSession

    joined = join(wanted, _tell)
    os.environ.update({"SPARK_REMOTE": joined.url, TOKEN: joined.token})
    spark = _configured(SparkSession.builder, REQUIRED).getOrCreate()
    atexit.register(_leave, spark)
    return spark


def _leave(spark: SparkSession) -> None:
    """Nothing of this process stays in the JVM."""
    with suppress(Exception):  # the JVM may have ended
        spark.stop()


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


def _is_own(settings: Mapping[str, str]) -> bool:
    """Whether a session would be opened on this machine, and by us: not on a server, nor where spark-submit has started
    this process."""
    return not is_connect() and _REMOTE not in settings and "PYSPARK_GATEWAY_PORT" not in os.environ


def require_startable(settings: Mapping[str, str]) -> None:
    """Raises SessionError where a session with the profile's settings would be this process's own, without a Java to
    run it."""
    if _REMOTE not in settings and not is_connect():
        require_java()


def _is_open() -> bool:
    """Whether this process has a session, of ours or of the user's own."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        SparkSession.active()
    except PySparkRuntimeError:
        return False
    return True


def _require_reached(spark: SparkSession, root: str) -> None:
    """By a path at which there is nothing; no job is run."""
    from pyspark.errors import AnalysisException

    try:
        spark.read.parquet(spark_uri(f"{root}/scratch/nothing-is-here"))
    except Exception as error:
        missing = missing_package(root, str(error))
        if missing is not None:
            name, package = missing
            raise StateError(
                f"Spark cannot reach state_root {root}: {name} is not on its class path",
                f"Set spark.jars.packages to {package}:<the version of Spark's hadoop-client> among "
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


def is_connect() -> bool:
    """Whether the session is one of Spark Connect."""
    return bool(os.environ.get("SPARK_REMOTE") or os.environ.get("SPARK_CONNECT_MODE_ENABLED"))


def _configured(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder
