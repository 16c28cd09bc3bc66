"""Connections: all of dbt's threads share one Spark session."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from dbt.adapters.differential.bindings import BoundSession
from dbt.adapters.spark import SparkConnectionManager
from dbt.adapters.spark.session import SessionConnectionWrapper
from dbt_common.exceptions import DbtRuntimeError

from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.runtime.session import open_session
from dbt_incremental_dd.trace.layout import Storage, open_storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCK = threading.Lock()


class DifferentialConnectionManager(SparkConnectionManager):
    """dbt-spark's, with the session opened first, so that its own settings hold."""

    TYPE = "differential"

    @classmethod
    def open(cls, connection: Any) -> Any:
        credentials = connection.credentials
        _session(credentials)
        opened = super().open(connection)
        if isinstance(opened.handle, SessionConnectionWrapper):
            opened.handle = BoundSession(opened.handle.handle)
        return opened

    def session(self) -> SparkSession:
        """The session; opened if nobody has."""
        return _session(self.profile.credentials)


def _session(credentials: Any) -> SparkSession:
    """The process's session. Raises DbtRuntimeError where nothing could be stored."""
    settings = {str(k): str(v) for k, v in credentials.server_side_parameters.items()}
    folder = _invocation_dir()
    with _LOCK:
        try:
            return open_session(credentials.root(folder), settings, credentials.storage_options)
        except DifferentialError as error:
            raise DbtRuntimeError(str(error)) from error


def _invocation_dir() -> str:
    from dbt.flags import get_flags

    return os.path.abspath(str(getattr(get_flags(), "PROJECT_DIR", None) or os.getcwd()))


def project_dir(config: Any) -> str:
    """The folder of the project that is run."""
    return os.path.abspath(str(getattr(config, "project_root", None) or _invocation_dir()))


def storage_of(credentials: Any, folder: str) -> Storage:
    """The state root that the profile names."""
    return open_storage(credentials.root(folder), credentials.storage_options)


__all__ = ["DifferentialConnectionManager", "project_dir", "storage_of"]
