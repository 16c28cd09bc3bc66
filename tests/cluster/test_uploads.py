"""Files of a source that are uploaded again: only their bytes say whether they have changed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import dbt_incremental_dd
from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.sources.intake import take_in
from dbt_incremental_dd.storage.objects import objects_of
from dbt_incremental_dd.trace.layout import Storage
from tests.open_table.written import Written
from tests.servers.s3 import S3

pytestmark = pytest.mark.cluster
COLUMNS = {"id": "bigint"}


def test_files_that_are_uploaded_again(s3: S3, tmp_path: Path) -> None:
    uri, storage = f"{s3.root}/uploads-{tmp_path.name}", Storage(str(tmp_path / "state"), s3.options)
    objects, folder = objects_of(uri, s3.options)
    spec = parse_source("s.t", "s.t", {"path": uri, "format": "json", "envelope": "append"}, COLUMNS, str(tmp_path))

    def upload(name: str, *ids: int, later: bool = False) -> None:
        time.sleep(1.1 * later)  # the store tells times to the second
        objects.write(f"{folder}/{name}", "".join(f'{{"id": {id}}}\n' for id in ids).encode())

    def taken(t: int) -> int:
        return take_in(Written.session(), storage, spec, t, print).rows

    upload("1.json", 1, 2)
    upload("day/2.json", 3)
    assert taken(1) == 3
    upload("1.json", 1, 2, later=True)
    assert taken(2) == 0
    upload("3.json", 4)
    upload("day/2.json", 3)
    assert taken(3) == 1
    upload("1.json", 1, 9, later=True)
    with pytest.raises(SourceError, match=r"file 1\.json has changed since it was taken in"):
        taken(4)
    upload("1.json", 1, 2)
    assert taken(5) == 0
    changes = dbt_incremental_dd.open(str(tmp_path / "state"))["s.t"].changes()
    assert sorted(changes["id"].to_pylist()) == [1, 2, 3, 4]
