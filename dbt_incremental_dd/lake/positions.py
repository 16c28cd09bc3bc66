"""Sets of row positions in a data file, as Delta's and Iceberg's deletion vectors store them.

Both store a 64-bit roaring bitmap in its portable form behind the same number, with its length before and a CRC-32
behind it (Delta's protocol, "Deletion Vector Format"; Iceberg's Puffin specification, "deletion-vector-v1").
"""

from __future__ import annotations

import base64
import binascii
import struct
import uuid
import zlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pyarrow import fs as pafs

from dbt_incremental_dd.core.errors import ConfigError

if TYPE_CHECKING:
    from pyroaring import BitMap64

_PORTABLE = 1681511377
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85, _TO_Z85 = str.maketrans(_Z85, _B85), str.maketrans(_B85, _Z85)
"""The same encoding in another alphabet."""
_VERSION = b"\1"
"""With which a file of vectors begins."""


def positions(values: Iterable[int] = ()) -> BitMap64:
    """A set of row positions."""
    try:
        from pyroaring import BitMap64
    except ImportError as error:
        raise ConfigError(
            "deletion vectors are roaring bitmaps, and pyroaring is not installed",
            "pip install 'dbt-incremental-dd[lake]'",
        ) from error
    return BitMap64(values)


def read_vector(filesystem: pafs.FileSystem, path: str, offset: int) -> BitMap64:
    """The vector in a file. Raises ValueError where it is damaged, OSError where it cannot be read."""
    with filesystem.open_input_file(path) as file:
        file.seek(offset)
        (size,) = struct.unpack(">i", file.read(4))
        body = file.read(size)
        (checksum,) = struct.unpack(">I", file.read(4))
    if zlib.crc32(body) != checksum:
        raise ValueError(f"the deletion vector at {offset} of {path} is damaged")
    return _decoded(body)


def inline_vector(text: str, size: int) -> BitMap64:
    """The vector that is written in the log itself."""
    return _decoded(_z85(text)[:size])


def vector_file(text: str) -> str:
    """The name of a vector's file below the table's folder, by what the log has for it: a prefix, and a UUID."""
    prefix, name = text[:-20], uuid.UUID(bytes=_z85(text[-20:]))
    return f"{prefix}/deletion_vector_{name}.bin" if prefix else f"deletion_vector_{name}.bin"


def vectors_as_file(vectors: Sequence[BitMap64]) -> tuple[bytes, list[tuple[int, int]]]:
    """A file of Delta's vectors, and each one's offset and size in it, both in bytes (Delta's protocol, "Deletion
    Vector File Storage Format")."""
    data, places = bytearray(_VERSION), []
    for vector in vectors:
        body = struct.pack("<i", _PORTABLE) + vector.serialize()
        places.append((len(data), len(body)))
        data += struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    return bytes(data), places


def file_text(name: uuid.UUID) -> str:
    """What the log has for the file that ``vector_file`` names."""
    return base64.b85encode(name.bytes).decode().translate(_TO_Z85)


def _z85(text: str) -> bytes:
    return base64.b85decode(text.translate(_TO_B85))


def _decoded(body: bytes) -> BitMap64:
    (magic,) = struct.unpack_from("<i", body)
    if magic != _PORTABLE:
        raise ValueError(f"a deletion vector is of an unknown form, {binascii.hexlify(body[:4]).decode()}")
    return type(positions()).deserialize(body[4:])
