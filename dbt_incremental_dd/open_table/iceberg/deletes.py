"""Files of deleted positions (Iceberg's specification, "Position Delete Files"): one for each data file that has any,
with all of them.
"""

from __future__ import annotations

import struct
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dbt_incremental_dd.lake.positions import positions
from dbt_incremental_dd.parquet.field_numbers import FIELD_ID
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyroaring import BitMap64

_PATH, _POS = 2147483546, 2147483545
"""The numbers of the columns, which the specification reserves."""
_SCHEMA = pa.schema(
    [
        pa.field("file_path", pa.dictionary(pa.int32(), pa.string()), False, {FIELD_ID: str(_PATH).encode()}),
        pa.field("pos", pa.int64(), False, {FIELD_ID: str(_POS).encode()}),
    ]
)
_REMEMBERED = 64


def deletes_as_file(uri: str, path: str, deleted: BitMap64) -> tuple[dict[str, Any], bytes]:
    """The deleted positions of the data file at ``path`` below the table's folder ``uri``: how a manifest describes
    their file, and its bytes."""
    rows, whole = np.asarray(deleted.to_array(), np.int64), f"{uri}/{path}"
    paths = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(rows), np.int32)), pa.array([whole]))
    out = pa.BufferOutputStream()
    pq.write_table(
        pa.table([paths, pa.array(rows)], schema=_SCHEMA),
        out,
        compression="snappy",
        use_dictionary=["file_path"],
        column_encoding={"pos": "DELTA_BINARY_PACKED"},
        store_schema=False,
    )
    data = out.getvalue().to_pybytes()
    described = {
        "content": 1,
        "file_path": f"{uri}/data/{uuid.uuid4().hex}-deletes.parquet",
        "file_format": "PARQUET",
        "partition": {},
        "record_count": len(rows),
        "file_size_in_bytes": len(data),
        "lower_bounds": _bounds(whole, int(rows[0])),
        "upper_bounds": _bounds(whole, int(rows[-1])),
        "referenced_data_file": whole,
    }
    return described, data


def _bounds(path: str, position: int) -> list[dict[str, Any]]:
    return [{"key": _PATH, "value": path.encode()}, {"key": _POS, "value": struct.pack("<q", position)}]


def data_file_of(described: Mapping[str, Any]) -> str:
    """The path of the data file that a file of deleted positions is about. Raises ValueError where there are several,
    which ours never have."""
    bounds = [{one["key"]: one["value"] for one in described.get(f"{end}_bounds") or ()} for end in ("lower", "upper")]
    low, high = (found.get(_PATH) for found in bounds)
    if low is None or low != high:
        raise ValueError(f"it names {described['file_path']}, which is about several data files")
    return bytes(low).decode()


_READ: OrderedDict[str, BitMap64] = OrderedDict()
"""By their URIs: the files never change, and a run asks for the same ones twice."""


def read_deletes(storage: Storage, uri: str) -> BitMap64:
    """The positions in a file of them. Raises OSError or ValueError."""
    found = _READ.get(uri)
    if found is None:
        filesystem, path = storage.filesystem(uri)
        found = positions(pq.read_table(path, filesystem=filesystem, columns=["pos"])["pos"].to_numpy())
        remember(uri, found)
    return found


def remember(uri: str, deleted: BitMap64) -> None:
    """For later, without reading it."""
    _READ[uri] = deleted
    _READ.move_to_end(uri)
    while len(_READ) > _REMEMBERED:
        _READ.popitem(last=False)
