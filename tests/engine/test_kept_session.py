"""Sessions that outlive their process: who gets which, and how they end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dbt_incremental_dd.runtime.kept_session import KeptSession, file_of, let_go, write

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="it looks at processes in /proc")
_USE = """
import sys
from dbt_incremental_dd.core.errors import SessionError
from dbt_incremental_dd.runtime.session import is_connect, open_session
root, keep, *settings = sys.argv[1:]
try:
    spark = open_session(root, dict(setting.split("=") for setting in settings), {}, float(keep))
except SessionError as error:
    sys.exit(str(error))
spark.sql("CREATE DATABASE IF NOT EXISTS shared")
spark.range(3).createOrReplaceTempView("of_this_process")
print(spark.sql("SHOW VIEWS").count(), spark.conf.get("spark.sql.shuffle.partitions"), is_connect())
"""


class Root:
    """A state root, and processes that open a session of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def use(self, keep: float, *settings: str, fails: bool = False) -> str:
        """What a process says; each has temporary views of its own."""
        call = [sys.executable, "-c", _USE, self.folder, str(keep), *settings]
        ran = subprocess.run(call, capture_output=True, text=True, timeout=300, check=False)
        assert (ran.returncode != 0) is fails, ran.stderr
        return ran.stderr if fails else ran.stdout

    @property
    def kept(self) -> KeptSession | None:
        """The session that is there for others."""
        path = Path(file_of(self.folder))
        return KeptSession.of(path.read_text()) if path.exists() else None

    @property
    def keeper(self) -> int:
        """The process id of its keeper."""
        kept = self.kept
        assert kept is not None
        return kept.keeper


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    made = Root(tmp_path)
    yield made
    kept = let_go(made.folder)
    if kept is not None:
        until(lambda: not is_alive(kept.keeper))


def until(holds: Callable[[], bool]) -> None:
    """Waits half a minute at most."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def is_alive(process: int) -> bool:
    """Whether a process is there; one that has ended, and that nobody has asked yet, is not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def jvm_of(keeper: int) -> int:
    """The one child of the keeper."""
    [child] = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
    return int(child)


def test_processes_share_one_until_it_is_let_go(root: Root) -> None:
    assert root.use(600) == root.use(600) == "1 2 True\n"
    keeper = root.keeper
    jvm = jvm_of(keeper)
    let_go(root.folder)
    until(lambda: not is_alive(keeper) and not is_alive(jvm))
    assert root.kept is None


def test_another_configuration_has_another_one(root: Root) -> None:
    """Also who keeps none does not wait for it, though the metastore serves one process at a time."""
    root.use(600)
    first = root.keeper
    assert root.use(600, "spark.sql.shuffle.partitions=3") == "1 3 True\n"
    second = root.keeper
    assert first != second and not is_alive(first)
    assert root.use(0) == "1 2 False\n"
    assert root.kept is None
    assert not is_alive(second)


def test_one_that_has_ended_or_was_killed_is_replaced(root: Root) -> None:
    root.use(1)
    keeper, jvm = root.keeper, jvm_of(root.keeper)
    until(lambda: not is_alive(keeper) and not is_alive(jvm))
    assert root.kept is None
    root.use(600)
    keeper, jvm = root.keeper, jvm_of(root.keeper)
    os.kill(keeper, signal.SIGKILL)
    until(lambda: not is_alive(jvm))
    assert root.use(600) == "1 2 True\n"
    keeper, jvm = root.keeper, jvm_of(root.keeper)
    os.kill(jvm, signal.SIGKILL)
    assert root.use(600) == "1 2 True\n"
    until(lambda: not is_alive(keeper))


def test_what_keeps_it_from_starting_is_said(root: Root) -> None:
    said = root.use(600, "spark.driver.memory=1q", fails=True)
    assert re.match(r"Spark did not start: .*spark\.log", said), said
    assert root.kept is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"port": 1}', '{"port": "x", "token": 1, "configuration": 2, "keeper": 3}']
)
def test_a_file_that_says_nothing_is_no_session(tmp_path: Path, text: str) -> None:
    Path(file_of(str(tmp_path))).write_text(text)
    assert let_go(str(tmp_path)) is None
    assert not Path(file_of(str(tmp_path))).exists()


def test_the_secret_is_for_this_user_alone(tmp_path: Path) -> None:
    path = file_of(str(tmp_path))
    session = KeptSession(1, "secret", "configuration", 2)
    os.close(write(path, session))
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert let_go(str(tmp_path)) == session
