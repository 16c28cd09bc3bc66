"""Java, which Spark's driver runs on: what to do where there is none, or where Spark does not start on it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dbt_incremental_dd.core.errors import SessionError
from dbt_incremental_dd.core.foreign import is_foreign, reason

_NEEDED = "Spark needs Java 17 or newer"
_TOO_OLD = "UnsupportedClassVersionError"
_NONE = ("JAVA_HOME is not set", "Unable to locate a Java Runtime")
"""What Spark's scripts and the stand-in of macOS say."""


def require_java() -> None:
    """Raises SessionError, with the command that installs it, where Spark's scripts would find no Java."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # a JVM runs already, and has started this process
        return
    home = os.environ.get("JAVA_HOME")
    if home and shutil.which(f"{home}/bin/java") is None:
        raise SessionError(f"{_NEEDED}, and JAVA_HOME is {home}, where there is none. Correct it, or: {_install()}")
    if not home and shutil.which("java") is None:
        raise SessionError(f"{_NEEDED}, and there is none. Install it: {_install()}")


@contextmanager
def starting(log: str) -> Iterator[None]:
    """Raises SessionError where a JVM that writes to the log does not start meanwhile."""
    path = Path(log)
    before = path.stat().st_size if path.exists() else 0
    try:
        yield
    except Exception as error:
        if not is_foreign(error):
            raise
        written = path.read_bytes()[before:].decode(errors="replace") if path.exists() else ""
        raise SessionError(_why(written, error, log)) from error


def _why(written: str, error: Exception, log: str) -> str:
    if _TOO_OLD in written:
        return f"{_NEEDED}, and this one is older. Install it: {_install()}"
    if any(text in written for text in _NONE):
        return f"{_NEEDED}, and there is none. Install it: {_install()}"
    return f"Spark did not start: {reason(error)} What it wrote is at the end of {log}."


def _install() -> str:
    if sys.platform == "darwin":
        return "brew install openjdk@17"
    if shutil.which("dnf"):
        return "sudo dnf install -y java-17-openjdk-headless"
    return "sudo apt-get install -y openjdk-17-jre-headless"
