"""The README's tutorial, typed as it stands there: its files, its commands, and what it says that they print."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import dbt_incremental_dd
from dbt_incremental_dd.cli import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

README = Path(__file__).parents[2] / "README.md"
_ENDLESS = ("subscribe", "watch", "serve")
_VARIES = (
    (r"\x1b\[\d*m", ""),
    (r"\.{3,}", "..."),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?", "TIME"),
    (r"\b\d+\.\d+s\b", "SECONDS"),
)


def section() -> str:
    found = re.search(r"(?ms)^## Five minutes.*?(?=^`analytics\.spend` is)", README.read_text())
    assert found
    return found[0]


def blocks() -> Iterator[tuple[str, str]]:
    """Each block of code, with the file that the text before it names last; "" for one of commands."""
    above = 0
    for found in re.finditer(r"(?ms)^```\w*\n(.*?)^```$", section()):
        names = re.findall(r"`([\w/]+\.(?:yml|sql))`", section()[above : found.start()])
        above = found.end()
        yield ("" if found[1].startswith("$ ") else names[0]), found[1]


def sessions() -> list[list[tuple[str, str]]]:
    """Commands with what they print; one list for each block of them."""
    texts = [text for name, text in blocks() if not name]
    return [re.findall(r"(?m)^\$ (.+)\n((?:(?!\$ ).*\n)*)", text) for text in texts]


def normal(line: str) -> str:
    for pattern, word in _VARIES:
        line = re.sub(pattern, word, line)
    return line.strip()


@contextmanager
def interrupted_when(condition: Callable[[], bool]) -> Iterator[None]:
    """Ctrl-C, as soon as the condition holds; the block has to end by itself then."""
    over, was_met = threading.Event(), threading.Event()

    def wait() -> None:
        deadline = time.monotonic() + 300
        while not over.wait(0.01) and time.monotonic() < deadline:
            if condition():
                was_met.set()
                break
        if not over.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert was_met.is_set(), "it ended by itself, or nothing came"


class Typist:
    """Types commands in the current folder; dbt and dbt-dd run in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._shown = ""

    def type(self, command: str) -> str:
        """What it prints. It has to succeed."""
        words = shlex.split(command, comments=True)
        self._capsys.readouterr()
        self._shown = ""
        if words[0] == "dbt":
            self._dbt(words[1:])
        elif words[0] == "cd":
            os.chdir(words[1])
        elif words[0] != "dbt-dd":
            subprocess.run(command, shell=True, check=True)
        elif words[1] in _ENDLESS:
            with interrupted_when(getattr(self, f"_{words[1]}_has_shown")):
                assert main([*words[1:], *(("0", "--port", "0") if words[1] == "serve" else ())]) == 0
        else:
            assert main(words[1:]) == 0, self._capsys.readouterr().err
        return self._read()

    def _read(self) -> str:
        self._shown += self._capsys.readouterr().out
        return self._shown

    def _dbt(self, arguments: list[str]) -> None:
        from dbt.cli.main import dbtRunner

        assert dbtRunner().invoke(arguments).success

    def _subscribe_has_shown(self) -> bool:
        return "7.00" in self._read()

    def _watch_has_shown(self) -> bool:
        """A file that is put there once it watches."""
        later = Path("data/orders/3.json")
        if not later.exists() and "everything" in self._read():
            later.write_text(json.dumps({"id": 2, "customer": "bob", "amount": 1, "updated_at": "2024-01-03"}) + "\n")
        return later.exists() and "spend +1 -0" in self._read() and spend()["bob"] == "1.00"

    def _serve_has_shown(self) -> bool:
        """Over HTTP, and a connection by the Postgres protocol; on ports that are free, not those of the README."""
        found = re.search(r"(?s)(http://\S+/).*-p (\d+) dd", self._read())
        if found is None:
            return False
        with urllib.request.urlopen(f"{found[1]}collections", timeout=10) as answer:
            assert {"analytics.spend", "shop.orders"} == {one["name"] for one in json.load(answer)}
        socket.create_connection(("127.0.0.1", int(found[2])), timeout=10).close()
        return True


def spend() -> dict[str, str]:
    rows = dbt_incremental_dd.open(".dbt_incremental_dd")["analytics.spend"].as_of().to_pylist()
    return {row["customer"]: str(row["spend"]) for row in rows}


@pytest.fixture
def typist(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Typist]:
    monkeypatch.chdir(tmp_path)
    for name in ("DBT_PROFILE", "DBT_PROFILES_DIR", "DBT_PROJECT_DIR", "DBT_TARGET"):
        monkeypatch.delenv(name, raising=False)
    yield Typist(capsys)
    for schema in ("analytics", "shop"):
        spark.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def check(typist: Typist, commands: list[tuple[str, str]]) -> dict[str, str]:
    """Types them; what the README says that they print is printed, line by line. Gives all that was printed."""
    shown = {}
    for command, printed in commands:
        shown[command.split("#")[0].strip()] = text = typist.type(command)
        lines = [normal(line).split("  ", 1)[-1] for line in text.splitlines()]
        for line in printed.splitlines():
            assert any(normal(line).split("  ", 1)[-1] in one for one in lines), (
                f"{command} says not {line}, but\n{text}"
            )
    return shown


def test_by_init(typist: Typist) -> None:
    check(typist, sessions()[0])
    assert spend() == {"ann": "5.00", "bob": "8.50"}


def test_by_hand(typist: Typist) -> None:
    for name, text in blocks():
        if name:
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).write_text(text)
    _, first, second = sessions()
    check(typist, first)
    shown = check(typist, second)
    assert spend() == {"ann": "7.00", "bob": "1.00"}
    assert "analytics.spend  model" in shown["dbt-dd status"]
    assert "spend +1 -0" in shown["dbt-dd watch"]
    assert re.search(r"analytics\.spend  at .*  2 rows  exact", shown["dbt-dd verify"])
    assert "Reduce by" in shown["dbt-dd explain spend"] and "State reduce1.sums" in shown["dbt-dd explain spend"]


def test_init_writes_the_files_of_the_tutorial(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path / "my_project")]) == 0
    written = {name: text for name, text in blocks() if name}
    assert set(written) == {"dbt_project.yml", "profiles.yml", "models/sources.yml", "models/spend.sql"}

    def read(name: str) -> Any:
        return (tmp_path / "my_project" / name).read_text()

    for name in ("profiles.yml", "models/sources.yml"):
        assert yaml.safe_load(read(name)) == yaml.safe_load(written[name])
    assert yaml.safe_load(written["dbt_project.yml"]).items() <= yaml.safe_load(read("dbt_project.yml")).items()
    assert read("models/spend.sql") == written["models/spend.sql"].partition("\n")[2]
