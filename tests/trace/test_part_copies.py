"""Pages of files in object storage: only those that are read are fetched, each once on a machine. The store is one in
memory."""

from __future__ import annotations

import os
import random
import resource
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.parquet import page_index, page_reader
from dbt_incremental_dd.parquet.page_index import SUFFIX
from dbt_incremental_dd.storage import mirror, part_copy, uploads
from dbt_incremental_dd.storage.mirror import Mirror
from dbt_incremental_dd.storage.objects import Objects
from dbt_incremental_dd.storage.part_copy import PartCopy
from dbt_incremental_dd.trace import data_folder, write
from dbt_incremental_dd.trace.driver_reader import read_files
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log_cache import Checked
from tests.trace.test_pages import SCHEMA, filtered, table_of

ROOT = "mem://bucket/state"
TRACE = f"{ROOT}/collections/m.x/trace"


@dataclass(frozen=True)
class Counted(Objects):
    """Notes what is read: paths, and the bytes."""

    log: list[tuple[str, int]]

    def read_tagged(self, path: str) -> tuple[bytes, str]:
        found = super().read_tagged(path)
        self.log.append((path.rsplit("/", 1)[-1], len(found[0])))
        return found

    def read_range(self, path: str, start: int, end: int) -> bytes:
        self.log.append((f"part of {path.rsplit('/', 1)[-1]}", end - start))
        return super().read_range(path, start, end)

    def take(self) -> list[tuple[str, int]]:
        taken = self.log.copy()
        self.log.clear()
        return taken


@dataclass
class World:
    """A trace of one file in a store, which machines of their own folders read."""

    objects: Counted
    folder: Path
    monkeypatch: pytest.MonkeyPatch
    file: DataFile
    machines: int = 0

    def machine(self) -> Storage:
        """A storage whose copies are in a new folder."""
        self.machines += 1
        made = Mirror(ROOT, self.objects, "state", 1 << 30, f"{self.folder}/{self.machines}")
        self.monkeypatch.setattr(Storage, "mirror", made)
        return Storage(ROOT)

    def copy(self, suffix: str = "") -> Path:
        """Where the latest machine has its copy, or what is beside it."""
        (found,) = Path(self.folder, str(self.machines)).rglob("data")
        return found.parent / f"{self.file.path}{suffix}"

    @property
    def name(self) -> str:
        return Path(self.file.path).name


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[pa.Table], World]:
    """Stores a table, as another machine does."""
    monkeypatch.setattr(part_copy, "REQUEST_BYTES", 200)

    def stored(table: pa.Table) -> World:
        objects = Counted(MemoryStore(), "mem://bucket", [])
        placeholder = DataFile("", 0, 0, first=0, last=0, min_diff=0, max_diff=0)
        world = World(objects, tmp_path, monkeypatch, placeholder)
        world.file = write.write_arrow(world.machine(), TRACE, table, SCHEMA, ("k", "s", "d"))
        uploads.settle(TRACE)
        return world

    return stored


def found(world: World, storage: Storage, keys: dict[str, list[Any]]) -> pa.Table:
    return read_files(storage, TRACE, [world.file], SCHEMA, keys)


def test_few_keys_fetch_few_pages_once(store: Callable[[pa.Table], World]) -> None:
    table = table_of([n // 3 for n in range(100_000)])
    world = store(table)
    storage, keys = world.machine(), {"k": [5, 30_000]}
    assert found(world, storage, keys).equals(filtered(table, keys))
    (index, size), *ranges = world.objects.take()
    assert index == f"{world.name}{SUFFIX}" and size < world.file.bytes / 5
    assert {name for name, _ in ranges} == {f"part of {world.name}"}
    assert sum(size for _, size in ranges) < world.file.bytes / 20
    assert found(world, storage, keys).equals(filtered(table, keys))
    assert found(world, storage, {"k": [5]}).equals(filtered(table, {"k": [5]}))
    assert world.objects.take() == []
    assert mirror._bytes(os.stat(world.copy(".part"))) < world.file.bytes / 4, "it is sparse"


def test_other_keys_fetch_the_pages_that_are_not_there(store: Callable[[pa.Table], World]) -> None:
    table = table_of(list(range(100_000)))
    world = store(table)
    storage = world.machine()
    found(world, storage, {"k": [5]})
    world.objects.take()
    keys = {"k": [5, 50_000]}
    assert found(world, storage, keys).equals(filtered(table, keys))
    assert 0 < sum(size for _, size in world.objects.take()) < world.file.bytes / 20


def test_many_keys_fetch_the_file(store: Callable[[pa.Table], World]) -> None:
    table = table_of(list(range(100_000)))
    world = store(table)
    storage, keys = world.machine(), {"k": list(range(0, 100_000, 1_500))}
    assert found(world, storage, {"k": [5]}).num_rows == 1
    # By whoever is quicker: DuckDB's rows have no order.
    assert found(world, storage, keys).sort_by("k").equals(filtered(table, keys))
    assert world.objects.take()[-1] == (world.name, world.file.bytes)
    assert found(world, storage, {"s": ["0007-é"]}).equals(filtered(table, {"s": ["0007-é"]}))
    assert world.objects.take() == [] and not world.copy(".part").exists()


def test_the_writer_has_its_file(store: Callable[[pa.Table], World]) -> None:
    table = table_of(list(range(100_000)))
    world = store(table)
    assert found(world, Storage(ROOT), {"k": [5]}).equals(filtered(table, {"k": [5]}))
    assert world.objects.take() == []


def test_a_file_without_an_index_is_fetched(store: Callable[[pa.Table], World]) -> None:
    table = table_of(list(range(100_000)))
    world = store(table)
    world.objects.delete([f"state/collections/m.x/trace/{world.file.path}{SUFFIX}"])
    assert found(world, world.machine(), {"k": [5]}).equals(filtered(table, {"k": [5]}))
    assert world.objects.take() == [(world.name, world.file.bytes)]


def test_a_run_stores_the_index_that_it_has_made(store: Callable[[pa.Table], World]) -> None:
    """Spark writes none."""
    table = table_of(list(range(100_000)))
    world = store(table)
    index = f"state/collections/m.x/trace/{world.file.path}{SUFFIX}"
    before = world.objects.read(index)
    world.objects.delete([index])
    found(world, world.machine(), {"k": [5]})  # a reader may not be allowed to
    with pytest.raises(FileNotFoundError):
        world.objects.read(index)
    found(world, replace(world.machine(), checked=Checked()), {"k": [5]})
    deadline = time.monotonic() + 10
    while index.rpartition("trace/")[2] not in world.objects.below("state/collections/m.x/trace"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert world.objects.read(index) == before
    world.objects.take()
    assert found(world, world.machine(), {"k": [5]}).equals(filtered(table, {"k": [5]}))
    assert world.objects.take()[0][0] == f"{world.name}{SUFFIX}"


@pytest.mark.parametrize("harm", ["killed while writing", "a flipped bit", "gone"])
def test_a_part_that_is_not_what_it_was_is_fetched_again(store: Callable[[pa.Table], World], harm: str) -> None:
    table = table_of(list(range(100_000)))
    world = store(table)
    storage, keys = world.machine(), {"k": [5, 70_000]}
    found(world, storage, keys)
    part, rng = world.copy(".part"), random.Random(harm)
    there = [at for at, byte in enumerate(part.read_bytes()) if byte]
    changed = bytearray(part.read_bytes())
    if harm == "a flipped bit":
        changed[rng.choice(there)] ^= 1 << rng.randrange(8)
    else:
        changed[there[len(there) // 2] :] = bytes(len(changed) - there[len(there) // 2])
    part.write_bytes(changed)
    if harm == "gone":
        part.unlink()
    world.objects.take()
    assert found(world, storage, keys).equals(filtered(table, keys))
    assert 0 < sum(size for _, size in world.objects.take()) < world.file.bytes / 10


def test_a_page_that_is_damaged_in_the_store_is_told(store: Callable[[pa.Table], World]) -> None:
    world = store(table_of(list(range(100_000))))
    path = f"state/collections/m.x/trace/{world.file.path}"
    data = bytearray(world.objects.read(path))
    data[100:-1_000] = bytes(byte ^ 1 for byte in data[100:-1_000])
    world.objects.write(path, bytes(data))
    with pytest.raises(OSError, match=f"checksum verification failed.*{world.name}"):
        found(world, world.machine(), {"k": [5]})


def test_a_damaged_index_is_done_without(store: Callable[[pa.Table], World]) -> None:
    table = table_of(list(range(100_000)))
    world = store(table)
    path = f"state/collections/m.x/trace/{world.file.path}{SUFFIX}"
    data = bytearray(world.objects.read(path))
    data[len(data) // 2] ^= 1
    world.objects.write(path, bytes(data))
    assert found(world, world.machine(), {"k": [5]}).equals(filtered(table, {"k": [5]}))


def test_an_index_without_checksums_is_of_no_use(store: Callable[[pa.Table], World]) -> None:
    table = table_of(list(range(100_000)))
    world = store(table)
    path = f"state/collections/m.x/trace/{world.file.path}{SUFFIX}"
    with pa.ipc.open_file(pa.BufferReader(world.objects.read(path)[: -len(page_index.CHECKED) - 4])) as reader:
        batch = reader.get_batch(0)
    batch = batch.select([name for name in batch.schema.names if not name.startswith("crc:")])
    made = pa.BufferOutputStream()
    with pa.ipc.new_file(made, batch.schema) as writer:
        writer.write_batch(batch)
    world.objects.write(path, made.getvalue().to_pybytes())
    assert found(world, world.machine(), {"k": [5]}).equals(filtered(table, {"k": [5]}))
    assert world.objects.take()[-1] == (world.name, world.file.bytes)


def test_a_part_takes_the_room_of_what_was_fetched(
    store: Callable[[pa.Table], World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = store(table_of(list(range(200_000))))
    found(world, world.machine(), {"k": [5]})
    ((_, size, paths),) = mirror._copies(f"{world.folder}/{world.machines}")
    assert size < world.file.bytes / 2 and len(paths) == 2
    monkeypatch.setattr(mirror, "_IN_USE", -1.0)
    Mirror(ROOT, world.objects, "state", 1, f"{world.folder}/{world.machines}")._make_room(1)
    assert not world.copy(".part").exists() and not world.copy(SUFFIX).exists()


def test_many_files_need_few_descriptors(store: Callable[[pa.Table], World], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_reader, "_FILES_AT_ONCE", 8)
    table = table_of(list(range(30_000)))
    world = store(table)
    files = [write.write_arrow(Storage(ROOT), TRACE, table, SCHEMA, ("k",)) for _ in range(50)]
    uploads.settle(TRACE)
    storage = world.machine()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 40, hard))
    try:
        assert read_files(storage, TRACE, files, SCHEMA, {"k": [5]}).num_rows == 50
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert not list(Path(world.folder, str(world.machines)).rglob("*.parquet")), "only pages were fetched"


def test_a_part_that_others_remove_is_read_on(store: Callable[[pa.Table], World]) -> None:
    table = table_of(list(range(100_000)))
    world = store(table)
    found(world, world.machine(), {"k": [5]})
    copy = str(world.copy())
    read = world.objects.read_range
    part = PartCopy(
        copy, world.file.bytes, lambda a, b: read(f"state/collections/m.x/trace/{world.file.path}", a, b), int
    )
    opened = part.opened()
    os.unlink(f"{copy}.part")
    part.opened()  # another thread makes it anew
    opened.fetch((1_000, 2_000))
    assert bytes(opened.view[1_000:2_000]) == read(f"state/collections/m.x/trace/{world.file.path}", 1_000, 2_000)


@given(
    st.lists(st.integers(0, 300) | st.none(), min_size=41, max_size=200),
    st.lists(st.sets(st.integers(-1, 301), max_size=5), min_size=1, max_size=4),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_the_same_rows_as_a_filter_s(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    numbers: list[int | None],
    wanted: list[set[int]],
) -> None:
    """One look-up after the other, with what the former ones have fetched."""
    monkeypatch.setattr(part_copy, "REQUEST_BYTES", 10)
    monkeypatch.setattr(page_reader, "_LARGEST_SHARE", 1.0)
    monkeypatch.setattr(write, "_PAGED", {**write._PAGED, "max_rows_per_page": 7})
    for module in (write, data_folder):
        monkeypatch.setattr(module, "ROWS_PER_GROUP", 40)
    numbers.sort(key=lambda n: -1 if n is None else n)
    table = table_of(numbers)
    objects = Counted(MemoryStore(), "mem://bucket", [])
    placeholder = DataFile("", 0, 0, first=0, last=0, min_diff=0, max_diff=0)
    world = World(objects, tmp_path_factory.mktemp("parts"), monkeypatch, placeholder)
    world.file = write.write_arrow(world.machine(), TRACE, table, SCHEMA, ("k", "s", "d"))
    uploads.settle(TRACE)
    storage = world.machine()
    for keys in wanted:
        rows = found(world, storage, {"k": sorted(keys)})
        assert _counted(rows) == _counted(filtered(table, {"k": sorted(keys)}))


def _counted(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, table.to_pylist()))
