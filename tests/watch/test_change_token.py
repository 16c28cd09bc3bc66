"""What a source looks like changes whenever something has come, and only then."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dbt_incremental_dd.api import Database
from dbt_incremental_dd.sources.change_token import change_token
from dbt_incremental_dd.sources.config import SourceSpec, parse_source
from dbt_incremental_dd.trace.layout import Storage


def spec(path: Path | None, **settings: Any) -> SourceSpec:
    given = settings if path is None else {"path": str(path), **settings}
    return parse_source("s.t", "s.t", given, {}, "")


def test_a_folder(tmp_path: Path) -> None:
    storage, folder = Storage(str(tmp_path / "state")), tmp_path / "in"
    one = spec(folder, format="json", envelope="append")
    looks = [change_token(storage, one)]
    for name, text in (
        ("a.json", "{}"),
        (".b.json", "{}"),
        ("_SUCCESS", ""),
        ("c.tmp", ""),
        ("d/e.json", "{}"),
        ("a.json", "{}\n"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        looks.append(change_token(storage, one))
    changed = [before != after for before, after in pairwise(looks)]
    assert changed == [True, False, False, False, True, True]
    assert change_token(storage, one) == looks[-1] is not None


def test_a_growing_file(tmp_path: Path) -> None:
    storage, path = Storage(str(tmp_path / "state")), tmp_path / "lines.jsonl"
    one = spec(path, format="json", envelope="append")
    missing = change_token(storage, one)
    path.write_text("{}\n")
    first = change_token(storage, one)
    with path.open("a") as out:
        out.write("{")
    assert missing != first != change_token(storage, one)


def test_a_delta_table(tmp_path: Path) -> None:
    storage, path = Storage(str(tmp_path / "state")), tmp_path / "table"
    one = spec(path, format="delta")
    looks = [change_token(storage, one)]
    for number in range(12):
        write_deltalake(str(path), pa.table({"a": [number]}), mode="append")
        looks.append(change_token(storage, one))
    assert len(set(looks)) == 13 and change_token(storage, one) == looks[-1]


def test_a_managed_source_also_looks_different_when_it_is_advanced(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"a": 1}))
    storage = Storage(str(tmp_path / "state"))
    one = spec(tmp_path / "a.json", format="json", frontier="managed")
    before = change_token(storage, one)
    Database(storage.root).advance("s.t", "2024-01-01", first=True)
    assert change_token(storage, one) != before


@pytest.mark.parametrize("format", [None, "parquet"])
def test_a_relation_of_the_catalog_cannot_be_looked_at(tmp_path: Path, format: str | None) -> None:
    assert change_token(Storage(str(tmp_path)), spec(None, format=format)) is None
