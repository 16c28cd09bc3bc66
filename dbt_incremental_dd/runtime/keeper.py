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
from collections.abc import Callable

from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.runtime.kept_session import TOKEN, KeptSession, Wanted, file_of, is_same_file, write
from dbt_incremental_dd.runtime.session import open_session
from dbt_incremental_dd.runtime.user_spark import user_spark

_PAUSE = 0.5
"""Seconds between two looks at who uses the session."""


def main() -> int:
    """Reads what is wanted; returns when it can be reached, and leaves a process behind. If it does not start, 1, and
    why is printed."""
    wanted = Wanted(**json.load(sys.stdin))
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8") as said:
            answer = json.loads(said.readline() or '"it was ended"')
        print(answer, end="")
        return 1 if answer else 0
    os.close(reader)
    os.dup2(2, 1)

    def say(answer: str) -> None:
        os.write(writer, f"{json.dumps(answer)}\n".encode())
        os.close(writer)

    try:
        _keep(wanted, lambda: say(""))
    except DifferentialError as error:
        say(str(error))
    return 0


def _keep(wanted: Wanted, ready: Callable[[], None]) -> None:
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
    path = file_of(wanted.folder)
    descriptor = write(path, KeptSession(port, token, wanted.configuration, os.getpid()))
    ready()
    _wait(descriptor, path, wanted.seconds)
    spark.stop()


def _wait(descriptor: int, path: str, seconds: float) -> None:
    """Until nobody has used the session for so many seconds; or, if its file is gone, until nobody uses it. Nobody can
    begin to from then on."""
    used = time.monotonic()
    while True:
        time.sleep(_PAUSE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            used = time.monotonic()
            continue
        is_there = is_same_file(descriptor, path)
        if not is_there:
            return
        if time.monotonic() - used >= seconds:
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
