"""What a server asks of the operating system, and how long it waits for a client."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys

import pytest

from dbt_incremental_dd.serve.os_limits import raise_open_file_limit
from dbt_incremental_dd.serve.write_timeout import ClientTooSlow, WriteTimeout


@pytest.mark.parametrize(("soft", "hard", "raised", "told"), [(256, 1_024, 1_024, True), (256, 5_000, 5_000, False)])
def test_open_files_are_raised_as_far_as_may_be(soft: int, hard: int, raised: int, told: bool) -> None:
    code = (
        "import resource\n"
        "from dbt_incremental_dd.serve.os_limits import raise_open_file_limit\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))\n"
        "raise_open_file_limit(print)\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert int(out[-1]) == raised
    assert [line.split(",")[0] for line in out[:-1]] == ([f"Only {hard} files may be open"] if told else [])


def test_a_system_that_allows_less_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("not so many")

    said: list[str] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    raise_open_file_limit(said.append)
    assert len(said) == 1 and said[0].startswith("Only 256 files")


class Waiting(asyncio.WriteTransport):
    """So many bytes wait in it, of which so many are taken in 0.05 s."""

    def __init__(self, waiting: int, taken: int) -> None:
        super().__init__()
        self.waiting, self.taken, self.is_cut_off = waiting, taken, False

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def abort(self) -> None:
        self.is_cut_off = True

    async def room(self) -> None:
        while self.waiting > 0:
            await asyncio.sleep(0.05)
            self.waiting -= self.taken


@pytest.mark.parametrize(("taken", "is_let_go"), [(0, True), (1, True), (100, False)])
def test_a_client_is_waited_for_as_long_as_it_takes_enough(taken: int, is_let_go: bool) -> None:
    async def wait(transport: Waiting) -> None:
        await WriteTimeout(seconds=0.3, min_bytes=100).wait(transport, transport.room)

    transport = Waiting(1_500, taken)
    if is_let_go:
        with pytest.raises(ClientTooSlow, match="takes less than 100 bytes"):
            asyncio.run(wait(transport))
    else:
        asyncio.run(wait(transport))
    assert transport.is_cut_off == is_let_go
