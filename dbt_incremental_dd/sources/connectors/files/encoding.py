"""Files in other encodings than UTF-8: copied in UTF-8, so that a byte that is no character is an error.

Spark's own readers put U+FFFD in its place.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import replace
from typing import BinaryIO

from pyarrow import fs as pafs

from dbt_incremental_dd.core.errors import ConfigError, SourceError
from dbt_incremental_dd.sources.connectors.files.spec import FilesSpec
from dbt_incremental_dd.sources.formats.options import option, without
from dbt_incremental_dd.storage.filesystems import make_folder
from dbt_incremental_dd.trace.layout import Storage

_BLOCK = 1 << 22
"""Bytes that are held at a time."""
_NAMES = ("encoding", "charset")


def encoding_of(spec: FilesSpec) -> str | None:
    """Python's name of the files' encoding; None where they are UTF-8. Raises ConfigError for one that nobody knows."""
    name = option(spec.options, "encoding", option(spec.options, "charset", "UTF-8"))
    if spec.format not in ("json", "csv"):
        return None
    try:
        found = codecs.lookup(name)
        "".encode(found.name)
    except LookupError as error:
        raise ConfigError(
            f"source {spec.name}: options.encoding is {name!r}", "Name one such as ISO-8859-1."
        ) from error
    return None if found.name in ("utf-8", "ascii") else found.name


def in_utf8(spec: FilesSpec) -> FilesSpec:
    """The source as its copies are read."""
    return replace(spec, options=without(spec.options, *_NAMES))


def keeps_lines(encoding: str) -> bool:
    """Whether a line's end is the byte that it is in ASCII, and that byte nothing else."""
    ascii = bytes(range(128))
    try:
        return ascii.decode(encoding) == ascii.decode() and not encoding.startswith(("utf-7", "utf_7", "iso2022", "hz"))
    except UnicodeDecodeError:
        return False


def copied(
    storage: Storage,
    spec: FilesSpec,
    filesystem: pafs.FileSystem,
    root: str,
    names: Sequence[str],
    encoding: str,
    told: str | None = None,
) -> str:
    """A new scratch folder with the files below ``root`` in UTF-8, under their names and compressed as they are.
    Raises SourceError, naming the file (``told``: by another name), for bytes that are none of the encoding."""
    scratch = storage.scratch("utf8")
    to, folder = storage.filesystem(scratch)
    try:
        for name in names:
            target = f"{folder}/{name}"
            make_folder(to, target.rsplit("/", 1)[0])
            try:
                with filesystem.open_input_stream(f"{root}/{name}") as read, to.open_output_stream(target) as write:
                    _copy(read, write, encoding)
            except UnicodeDecodeError as error:
                raise SourceError(
                    f"source {spec.name}: file {told or f'{root}/{name}'} is not {encoding}: {error.reason}",
                    "Correct the file, or options.encoding.",
                ) from error
    except BaseException:
        storage.remove(scratch)
        raise
    return scratch


def _copy(read: BinaryIO, write: BinaryIO, encoding: str) -> None:
    block = read.read(_BLOCK)
    decoder = codecs.getincrementaldecoder(_with_order(encoding, block))()
    while block:
        following = read.read(_BLOCK)
        write.write(decoder.decode(block, final=not following).encode())
        block = following


def _with_order(encoding: str, beginning: bytes) -> str:
    """Without a mark at the beginning the order of bytes is that of Java, and of RFC 2781."""
    is_marked = beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE))
    return f"{encoding}-be" if encoding in ("utf-16", "utf-32") and not is_marked else encoding
