"""A bucket as one of pyarrow's file systems: what Arrow and the engine ask of it is as on a local disk."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from obstore.store import MemoryStore
from pyarrow import fs as pafs

from dbt_incremental_dd.storage.object_files import ObjectFiles
from dbt_incremental_dd.storage.objects import Objects

TABLE = pa.table({"k": range(1_000), "v": [f"value {n}" for n in range(1_000)]})
Files = tuple[pafs.FileSystem, str]


@pytest.fixture(params=["disk", "objects"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Files]:
    """A file system and a folder in it, with a Parquet file and two other ones."""
    if request.param == "disk":
        filesystem, root = pafs.LocalFileSystem(), f"{tmp_path}/state"
        filesystem.create_dir(f"{root}/data/more", recursive=True)
    else:
        filesystem, root = pafs.PyFileSystem(ObjectFiles(Objects(MemoryStore(), "mem://bucket"))), "bucket/state"
    pq.write_table(TABLE, f"{root}/data/a.parquet", filesystem=filesystem)
    for name in ("data/b.txt", "data/more/c.txt"):
        with filesystem.open_output_stream(f"{root}/{name}") as out:
            out.write(name.encode())
    yield filesystem, root


def names(found: list[pafs.FileInfo], root: str) -> set[tuple[str, pafs.FileType]]:
    return {(one.path.removeprefix(f"{root}/"), one.type) for one in found}


def test_files_and_folders_are_found(files: Files) -> None:
    filesystem, root = files
    file, folder, nothing = pafs.FileType.File, pafs.FileType.Directory, pafs.FileType.NotFound
    asked = [f"{root}/{name}" for name in ("data/b.txt", "data", "data/b")]
    infos = filesystem.get_file_info(asked)
    assert [one.type for one in infos] == [file, folder, nothing]
    assert infos[0].size == len("data/b.txt") and infos[0].mtime_ns > 0
    direct = filesystem.get_file_info(pafs.FileSelector(f"{root}/data"))
    assert names(direct, root) == {("data/a.parquet", file), ("data/b.txt", file), ("data/more", folder)}
    below = filesystem.get_file_info(pafs.FileSelector(f"{root}/data", recursive=True))
    assert {name for name, kind in names(below, root) if kind == file} == {
        *("data/a.parquet", "data/b.txt", "data/more/c.txt")
    }
    assert filesystem.get_file_info(pafs.FileSelector(f"{root}/none", allow_not_found=True)) == []
    with pytest.raises(FileNotFoundError):
        filesystem.get_file_info(pafs.FileSelector(f"{root}/none"))


def test_files_are_read_whole_and_in_parts(files: Files) -> None:
    filesystem, root = files
    assert pq.read_table(f"{root}/data/a.parquet", filesystem=filesystem) == TABLE
    assert pq.read_metadata(f"{root}/data/a.parquet", filesystem=filesystem).num_rows == 1_000
    found = ds.dataset(f"{root}/data/a.parquet", filesystem=filesystem).to_table(filter=ds.field("k") == 7)
    assert found.column("v").to_pylist() == ["value 7"]
    with filesystem.open_input_file(f"{root}/data/b.txt") as file:
        file.seek(5)
        assert (file.read(3), file.read(), file.read(), file.size()) == (b"b.t", b"xt", b"", 10)
    with filesystem.open_input_stream(f"{root}/data/b.txt") as file:
        assert file.read() == b"data/b.txt"
    for open_it in (filesystem.open_input_file, filesystem.open_input_stream):
        with pytest.raises(FileNotFoundError):
            open_it(f"{root}/none")


def test_files_are_moved_copied_and_removed(files: Files) -> None:
    filesystem, root = files
    filesystem.copy_file(f"{root}/data/b.txt", f"{root}/data/d.txt")
    filesystem.move(f"{root}/data/b.txt", f"{root}/data/e.txt")
    left = {name for name, _ in names(filesystem.get_file_info(pafs.FileSelector(f"{root}/data")), root)}
    assert left == {"data/a.parquet", "data/d.txt", "data/e.txt", "data/more"}
    filesystem.delete_file(f"{root}/data/d.txt")
    with pytest.raises(FileNotFoundError):
        filesystem.delete_file(f"{root}/data/d.txt")
    filesystem.delete_dir(f"{root}/data")
    assert filesystem.get_file_info(f"{root}/data/a.parquet").type == pafs.FileType.NotFound


def test_no_thread_of_python_is_left() -> None:
    """One that is still at work while Python ends can abort the process."""
    code = (
        "import sys, threading; from dbt_incremental_dd.trace.layout import Storage; "
        "storage = Storage('abfss://c@account.dfs.core.windows.net/state', {'AZURE_STORAGE_ACCOUNT_KEY': 'eA=='}); "
        "storage.filesystem(storage.root); "
        "assert threading.enumerate() == [threading.main_thread()], threading.enumerate(); "
        "assert 'fsspec.asyn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
