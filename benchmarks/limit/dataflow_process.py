"""The program in the folder ``dataflow`` as a process: tables and their changes in, seconds and answers out."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_CRATE = Path(__file__).with_name("dataflow")
_RUST = "1.88"
TABLES = {
    "q03": ("customer", "orders", "lineitem"),
    "q09": ("nation", "supplier", "part", "partsupp", "orders", "lineitem"),
    "q18": ("customer", "orders", "lineitem"),
}
"""What each query reads."""


def build() -> Path:
    """The program. Raises SystemExit with a remedy if it cannot be compiled."""
    if shutil.which("cargo") is None:
        raise SystemExit(f"cargo is not there. Install Rust {_RUST} or newer: https://rustup.rs")
    target = _CRATE / "target"
    command = ["cargo", "build", "--release", "--target-dir", str(target)]
    if subprocess.run(command, cwd=_CRATE).returncode:
        raise SystemExit(f"{_CRATE} was not built. It needs Rust {_RUST} or newer, and crates.io or cargo's cache.")
    return target / "release" / "limit"


@dataclass(frozen=True)
class Took:
    """``seconds`` until all answers were up to date. Reading the files of updates took ``reading``, before."""

    seconds: float
    reading: float


class Dataflow:
    """One process that holds the queries in one dataflow, which share what is arranged. To be closed."""

    def __init__(self, program: Path, queries: Sequence[str], workers: int) -> None:
        self.queries = tuple(queries)
        self._tables = {table for query in queries for table in TABLES[query]}
        self._process = subprocess.Popen(
            [str(program), str(workers), *queries], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Dataflow:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate()

    def update(self, files: Mapping[str, Path]) -> Took:
        """Takes in files of updates, by table, as one change. Those of tables that no query reads are left out."""
        reading = seconds = 0.0
        for table in self._tables & files.keys():
            read, handed = map(float, self._ask(f"update {table} {files[table]}").split())
            reading, seconds = reading + read, seconds + handed
        return Took(seconds + float(self._ask("commit")), reading)

    def answer(self, query: str, file: Path) -> None:
        """Writes the query's rows."""
        self._ask(f"answer {query} {file}")

    def peak_memory(self) -> int:
        """The process's greatest resident size so far, in bytes, what reading files took included; 0 if not known."""
        status = Path(f"/proc/{self._process.pid}/status")
        lines = status.read_text().splitlines() if status.exists() else []
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))

    def _ask(self, command: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the dataflow of {', '.join(self.queries)} has ended at: {command}")
        return answer.strip()
