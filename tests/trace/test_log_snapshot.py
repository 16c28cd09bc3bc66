"""What a machine notes of a log is what the log was; entries after it are applied as delta-rs applies them."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import DATE, DOUBLE, INTEGER, STRING
from dbt_incremental_dd.trace import log_loader
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.entries import entry_path
from dbt_incremental_dd.trace.entry_reader import read_entry
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import KNOWN
from dbt_incremental_dd.trace.log_snapshot import Snapshot, read_snapshot, write_snapshot

COLUMNS = (Column("k", INTEGER), Column("Odd `name`", STRING), Column("d", DATE), Column("x", DOUBLE))
SCHEMA = Schema((*COLUMNS, TIME_COLUMN, DIFF_COLUMN))
BOUNDS = {"k": (-3, 1 << 30), "Odd `name`": ('"', "é\u2028"), "d": (date(1, 1, 1), date(9999, 12, 31))}


def file_of(name: str, time: int, **bounds: tuple[object, object]) -> DataFile:
    return DataFile(f"data/{name}.parquet", 3, 100, time, time + 1, -1, 2, bounds)


def test_a_snapshot_is_what_was_written(tmp_path: Path) -> None:
    files = (file_of("a", 1, **BOUNDS), file_of("b", 5))
    written = Snapshot("m.t", "s3://b/t", 7, '"tag"', SCHEMA, {"dd:upper": 9, "dd:since": None}, files)
    write_snapshot(f"{tmp_path}/new", written)
    assert read_snapshot(f"{tmp_path}/new") == written
    assert read_snapshot(str(tmp_path)) is None


@pytest.mark.parametrize("damage", [b"", b"0", b"no checksum", None], ids=["empty", "cut", "other", "a bit"])
def test_a_damaged_snapshot_is_none(tmp_path: Path, damage: bytes | None) -> None:
    write_snapshot(str(tmp_path), Snapshot("m.t", "s3://b/t", 7, "tag", SCHEMA, {}, (file_of("a", 1),)))
    path = tmp_path / "log.json"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data) if damage is None else damage)
    assert read_snapshot(str(tmp_path)) is None


def test_entries_are_applied_as_delta_rs_applies_them(tmp_path: Path) -> None:
    """Also those that delta-rs has written, with a checkpoint."""
    place = Storage(str(tmp_path)).collection("m.t")
    log = place.create(SCHEMA)
    kept: list[DataFile] = []
    for number in range(60):
        add = (file_of(f"f{number}", number, **(BOUNDS if number % 3 else {})),)
        remove = (kept.pop(0),) if number % 4 == 3 else ()
        before, kept = log, [*kept, *add]
        log = log.commit(Commit(add=add, remove=remove, upper=number + 5, since=number, manifest=number))
        entry = read_entry(Path(entry_path(log.uri, log.version)).read_bytes(), log.schema)
        assert entry is not None
        KNOWN.forget(log.uri)
        loaded, applied = log_loader.load("m.t", log.uri), before.after(entry)
        assert loaded is not None
        assert (applied.version, applied.files, applied.frontiers, applied.manifest, applied.schema) == (
            *(loaded.version, loaded.files, loaded.frontiers, loaded.manifest, loaded.schema),
        )


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["no JSON"],
        ['{"metaData": {"schemaString": "{}"}}'],
        ['{"commitInfo": {}}', '{"protocol": {"minReaderVersion": 1}}'],
        ['{"add": {"path": "../other.parquet", "size": 1, "stats": "{}"}}'],
        ['{"add": {"path": "data/a.parquet", "size": 1}}'],
        ['{"add": {"path": "data/a.parquet", "size": 1, "stats": "{\\"numRecords\\": 1}"}}'],
        ['{"txn": {"appId": "dd:upper"}}'],
        ["[1]"],
        ["{}"],
    ],
)
def test_other_entries_are_left_to_delta_rs(lines: list[str]) -> None:
    assert read_entry("\n".join(lines).encode(), SCHEMA) is None


def test_an_entry_of_a_transaction_of_others_moves_nothing(tmp_path: Path) -> None:
    log = Storage(str(tmp_path)).collection("m.t").create(SCHEMA)
    entry = read_entry(json.dumps({"txn": {"appId": "theirs", "version": 3}}).encode(), SCHEMA)
    assert entry is not None
    assert log.after(entry).frontiers == log.frontiers
