"""``python -m dbt_incremental_dd.runtime.keeper``: a process that keeps a session for others, as long as they use it.

It is a Spark application of its own, whose driver also answers Spark Connect on this machine, to whoever knows the
secret. Its JVM ends with it, however it ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
import sys
import time
from contextlib import suppress

from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.core.foreign import is_foreign, reason
from dbt_incremental_dd.runtime.kept_session import TOKEN, KeptSession, Wanted, file_of, is_same_file, write
from dbt_incremental_dd.runtime.session import open_session
from dbt_incremental_dd.runtime.user_spark import user_spark

_PAUSE = 0.5
"""Seconds between two looks at who uses the session."""
_FIRST_USER = 10.0
"""Seconds more that it waits for whoever has had it started."""


def main() -> int:
    """Reads what is wanted; returns when it can be reached, and leaves a process behind. If it does not start, 1, and
    why is printed."""
    wanted = Wanted(**json.load(sys.stdin))
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8") as said:
            line = said.readline()
        answer = json.loads(line) if line else f"Spark did not start. See the end of {wanted.folder}/spark.log."
        print(answer, end="")
        return 1 if answer else 0
    os.close(reader)
    os.dup2(2, 1)

    descriptor, answer = _started(wanted)
    os.write(writer, f"{json.dumps(answer)}\n".encode())
    os.close(writer)
    if descriptor is not None:
        _wait(descriptor, file_of(wanted.folder), wanted.seconds)
    return 0


def _started(wanted: Wanted) -> tuple[int | None, str]:
    """The file that makes the session known; or why there is none."""
    try:
        return _start(wanted), ""
    except DifferentialError as error:
        return None, str(error)
    except Exception as error:
        if not is_foreign(error):
            raise
        return None, f"Spark did not start: {reason(error)} See the end of {wanted.folder}/spark.log."


def _start(wanted: Wanted) -> int:
    port, token = _free_port(), secrets.token_urlsafe(32)
    os.environ[TOKEN] = token
    given = {**user_spark(os.environ).settings, **wanted.settings}.get("spark.plugins", "")
    own = {
        "spark.plugins": ",".join(filter(None, (given, "org.apache.spark.sql.connect.SparkConnectPlugin"))),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    spark = open_session(wanted.root, {**wanted.settings, **own}, wanted.options)
    spark.sql("SHOW SCHEMAS").collect()  # the metastore is open from now on, so its files tell who changes it
    return write(file_of(wanted.folder), KeptSession(port, token, wanted.configuration, os.getpid()))


def _wait(descriptor: int, path: str, seconds: float) -> None:
    """Until nobody has used the session for so many seconds; or, if its file is gone, until nobody uses it. Nobody can
    begin to from then on."""
    used = time.monotonic() + _FIRST_USER
    while True:
        time.sleep(_PAUSE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            used = time.monotonic()
            continue
        if not is_same_file(descriptor, path):
            return
        if time.monotonic() - used >= seconds:
            with suppress(FileNotFoundError):
                os.unlink(path)
            return
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main())
