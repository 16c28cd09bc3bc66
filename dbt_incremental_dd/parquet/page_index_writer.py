"""Writes the index of a sorted Parquet file's pages."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as pafs

from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.parquet.page_index import CHECKED, CRC_BYTES, KEY_BYTES, SUFFIX, FileColumn, Values, comparable
from dbt_incremental_dd.parquet.thrift import Fields, decode, decode_numbers

_TAIL = 8
"""Bytes of a Parquet file after its footer: the footer's length, and the magic number."""
_REPEATED = 2
_PAGE_HEADS = bytes((0x16, 0x15, 0x16))
"""Field headers of a page's offset, size and first row in Thrift's compact protocol."""


def write_pages(filesystem: pafs.FileSystem, path: str, footer: pq.FileMetaData, bounded: Sequence[str]) -> None:
    """Stores the index of a local file that is sorted by one of the columns. Stores nothing for other files, nor if
    Parquet's own page index lacks what is needed."""
    names = [name for name in bounded if "." not in name and _may_be_sorted(footer, name)]
    if not names or not isinstance(filesystem, pafs.LocalFileSystem):  # single pages are read from local disks only
        return
    with filesystem.open_input_file(path) as file:
        data = file.read()
    keys = {name: values for name in names if (values := _sorted(data, name)) is not None}
    try:
        batch = _pages(data, keys) if keys else None
    except (LookupError, ValueError):
        return
    if batch is not None:
        reached("index of pages: before")
        made = pa.BufferOutputStream()
        with pa.ipc.new_file(made, batch.schema) as writer:
            writer.write_batch(batch)
        index = made.getvalue()
        with filesystem.open_output_stream(f"{path}{SUFFIX}") as out:
            out.write(index)
            out.write(zlib.crc32(index).to_bytes(CRC_BYTES, "little") + CHECKED)


def _may_be_sorted(footer: pq.FileMetaData, name: str) -> bool:
    """Whether the row groups are ordered by the column's bounds: a cheap test that excludes most columns."""
    number = next((i for i in range(footer.num_columns) if footer.schema.column(i).path == name), None)
    if number is None:
        return False
    found = [footer.row_group(i).column(number).statistics for i in range(footer.num_row_groups)]
    if any(one is None or not one.has_min_max for one in found) or found[0].min == found[-1].max:
        return False
    return all(one.max <= other.min for one, other in pairwise(found))


def _sorted(data: bytes, name: str) -> list[Values] | None:
    """The column's values by row group; None if a row group is not sorted."""
    file = pq.ParquetFile(pa.BufferReader(data))
    groups = []
    for number in range(file.num_row_groups):
        values = comparable(file.read_row_group(number, columns=[name]).column(0).combine_chunks())
        if values is None or not (values[:-1] <= values[1:]).all():
            return None
        groups.append(values)
    return groups


@dataclass(frozen=True)
class _Chunk:
    """A column's pages in one row group: their first rows and offsets, and the end of the last one."""

    rows: list[int]
    starts: list[int]
    dictionary: int
    end: int


def _chunk(data: bytes, column: Fields) -> _Chunk:
    """Raises KeyError if the file has no page index of its own."""
    stored = data[column[4] : column[4] + column[5]]
    pages = decode_numbers(stored, _PAGE_HEADS)
    if pages is None:
        found = decode(stored)[0][1].values
        pages = np.array([[page[number] for number in (1, 2, 3)] for page in found], np.int64)
    starts = pages[:, 0].tolist()
    return _Chunk(pages[:, 2].tolist(), starts, column[3].get(11) or starts[0], int(pages[-1, :2].sum()))


def _pages(data: bytes, keys: Mapping[str, Sequence[Values]]) -> pa.RecordBatch | None:
    """The index; None if the columns of a row group have pages that begin at different rows."""
    size = int.from_bytes(data[-_TAIL : 4 - _TAIL], "little")
    footer, _ = decode(data, len(data) - _TAIL - size)
    groups = footer[4].values
    rows: list[int] = []
    sizes: list[int] = []
    starts: list[list[int]] = [[] for _ in groups[0][1].values]
    for group in groups:
        chunks = [_chunk(data, column) for column in group[1].values]
        if any(chunk.rows != chunks[0].rows for chunk in chunks):
            return None
        sizes.append(len(chunks[0].rows) + 2)
        rows += [0, *chunks[0].rows, group[3]]
        for known, chunk in zip(starts, chunks, strict=True):
            known += [chunk.dictionary, *chunk.starts, chunk.end]
    columns = {"row": pa.array(rows, pa.int64())}
    columns |= {f"key:{name}": _firsts(values, rows, sizes) for name, values in keys.items()}
    columns |= {f"at:{number}": pa.array(known, pa.int64()) for number, known in enumerate(starts)}
    columns |= {f"crc:{number}": _checksums(data, known) for number, known in enumerate(starts)}
    fields = {name: field.to_text() for name, field in _fields(footer).items()}
    return pa.record_batch(columns).replace_schema_metadata({"fields": json.dumps(fields), "groups": json.dumps(sizes)})


def _checksums(data: bytes, starts: Sequence[int]) -> pa.Array:
    source = memoryview(data)
    return pa.array([*(zlib.crc32(source[a:b]) for a, b in pairwise(starts)), 0], pa.uint32())


def _firsts(groups: Sequence[Values], rows: Sequence[int], sizes: Sequence[int]) -> pa.Array:
    """The values at the pages' first rows, and the last value of each row group."""
    found, at = [], 0
    for values, size in zip(groups, sizes, strict=True):
        found.append(values[np.minimum(rows[at : at + size], len(values) - 1)])
        at += size
    firsts = np.concatenate(found)
    if firsts.dtype.kind == "S":
        return pa.Array.from_buffers(pa.binary(KEY_BYTES), len(firsts), [None, pa.py_buffer(firsts.tobytes())])
    return pa.array(firsts)


def _fields(footer: Fields) -> dict[str, FileColumn]:
    """The file's top-level columns by name, without those whose values repeat."""
    schema, chunks = footer[2].values, [column[3] for column in footer[4].values[0][1].values]
    found, at, leaf = {}, 1, 0
    while at < len(schema):
        end = _end_of(schema, at)
        part = schema[at:end]
        leaves = range(leaf, leaf + sum(5 not in element for element in part))
        if all(element.get(3) != _REPEATED for element in part):
            same = tuple({number: chunks[i][number] for number in (1, 2, 3, 4)} for i in leaves)
            found[part[0][4].decode()] = FileColumn(tuple(part), same, tuple(leaves))
        at, leaf = end, leaves.stop
    return found


def _end_of(schema: Sequence[Fields], at: int) -> int:
    """The end of the schema element at ``at`` with its children; elements are in depth-first order."""
    end = at + 1
    for _ in range(schema[at].get(5, 0)):
        end = _end_of(schema, end)
    return end
