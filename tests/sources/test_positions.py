"""Deletion vectors as they are stored."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
from pyarrow import fs as pafs

from dbt_incremental_dd.lake.positions import inline_vector, positions, read_vector, vector_file
from dbt_incremental_dd.sources.connectors.lake.following import differing

MANY = [*range(0, 1_000_000, 7), 1 << 33, (1 << 40) + 3]


def vector(values: list[int]) -> bytes:
    """The vector's number, and the bitmap in its portable form."""
    return struct.pack("<i", 1681511377) + positions(values).serialize()


def z85(body: bytes) -> str:
    """As the log has it: four bytes are five digits to the base of 85."""
    words = struct.unpack(f">{-(-len(body) // 4)}I", body + bytes(-len(body) % 4))
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    return "".join(digits[word // 85**place % 85] for word in words for place in (4, 3, 2, 1, 0))


@pytest.mark.parametrize("values", [[], [0], [3, 5, 1 << 31, 1 << 32], MANY])
def test_a_vector_in_a_file(tmp_path: Path, values: list[int]) -> None:
    body = vector(values)
    path = tmp_path / "v.bin"
    path.write_bytes(b"\1" + struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body)))
    assert list(read_vector(pafs.LocalFileSystem(), str(path), 1)) == values
    path.write_bytes(b"\1" + struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body) ^ 1))
    with pytest.raises(ValueError, match="is damaged"):
        read_vector(pafs.LocalFileSystem(), str(path), 1)


def test_the_name_of_a_vector_s_file() -> None:
    """The specification's own example."""
    assert vector_file("ab^-aqEH.-t@S}K{vb[*k^") == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


def test_a_vector_in_the_log_itself() -> None:
    body = vector([3, 4, 7, 11, 18, 29])
    assert list(inline_vector(z85(body), len(body))) == [3, 4, 7, 11, 18, 29]


def test_an_unknown_form_is_refused() -> None:
    body = struct.pack("<i", 7) + bytes(8)
    with pytest.raises(ValueError, match="unknown form, 07000000"):
        inline_vector(z85(body), len(body))


def test_rows_in_which_two_versions_of_a_file_differ() -> None:
    none, some, more = positions(), positions([1, 2]), positions([2, 3])
    assert differing([more], [some]) == ([(positions([1]), None)], [(positions([3]), None)])
    assert differing([some], [None]) == ([], [(some, None)])
    assert differing([some, none], [some]) == ([(None, none)], [])
    assert differing([], [some]) == ([], [(None, some)])
