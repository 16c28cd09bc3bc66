"""A project's seeds: scaled, and changed at random."""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

from dbt_common.clients.agate_helper import build_type_tester

_INTEGER = re.compile(r"-?\d{1,18}")
_NUMBER = re.compile(r"-?\d+\.\d+")
_TIME = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d.*)?")
_REFERENCE = re.compile(r"(.*_)?(id|key)", re.IGNORECASE)


@dataclass
class Seed:
    """A CSV file. An empty field is NULL."""

    path: Path
    header: list[str]
    rows: list[list[str]]

    @staticmethod
    def read(path: Path) -> Seed:
        """The seed as it is."""
        with path.open(newline="", encoding="utf-8-sig") as file:
            header, *rows = [row for row in csv.reader(file) if row]
        return Seed(path, header, rows)

    def write(self, rows: Iterable[Sequence[str]] | None = None) -> None:
        """Writes these rows, or its own."""
        with self.path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([self.header, *(self.rows if rows is None else rows)])

    def values(self, column: int) -> set[str]:
        """What the column holds, but NULL."""
        return {row[column] for row in self.rows if row[column]}

    @cached_property
    def kinds(self) -> list[str]:
        """Of each column: integer, number, time, or text. The first contents say."""
        return [_kind(self.values(column)) for column in range(len(self.header))]

    def types(self) -> list[type]:
        """Of each column, how dbt reads it: it goes by all that the column holds."""
        return _types(self.header, self.rows)

    @cached_property
    def typical(self) -> list[tuple[type, str | None]]:
        """Of each column, its type as the file was first, and a value that has the type by itself."""

        def value(column: int, type_: type) -> str | None:
            found = sorted(self.values(column))
            return next((text for text in found if _types(["x"], [[text]]) == [type_]), None)

        return [(type_, value(column, type_)) for column, type_ in enumerate(self.types())]

    @cached_property
    def keys(self) -> frozenset[int]:
        """Columns that tell one row from another: the first one and ``id``, where each row has a value of its own."""
        found = [c for c, name in enumerate(self.header) if c == 0 or name.lower() == "id"]
        return frozenset(c for c in found if len(self.values(c)) == len(self.rows))


def _types(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[type]:
    return [type(found) for found in build_type_tester(()).run(rows, list(header))]


def _kind(values: set[str]) -> str:
    for kind, pattern in (("integer", _INTEGER), ("number", _NUMBER), ("time", _TIME)):
        if values and all(pattern.fullmatch(value) for value in values):
            return kind
    is_number = values and all(_INTEGER.fullmatch(value) or _NUMBER.fullmatch(value) for value in values)
    return "number" if is_number else "text"


def scale(seeds: Sequence[Seed], rows: int) -> None:
    """Repeats what the seeds hold until the longest has so many rows. Each repetition has keys of its own, and what
    refers to a key refers to the same row's in the same repetition. Seeds without such columns stay as they are."""
    longest = max((len(seed.rows) for seed in seeds), default=0)
    times = max(1, -(-rows // longest)) if longest else 1
    references = _references(seeds)
    integers = [int(v) for seed, cs in references for c in cs if seed.kinds[c] == "integer" for v in seed.values(c)]
    step = min(10 ** len(str(max(integers, default=1))), (2**62 - max(integers, default=1)) // max(times, 1))
    for seed, columns in references:
        if columns:
            seed.rows = [_repeated(seed, row, columns, n, step) for n in range(times) for row in seed.rows]


def _references(seeds: Sequence[Seed]) -> list[tuple[Seed, set[int]]]:
    """Columns that are keys or refer to one, by their names or by what they hold."""
    known = set().union(*(seed.values(c) for seed in seeds for c in seed.keys if seed.kinds[c] == "text"))

    def refers(seed: Seed, c: int) -> bool:
        if seed.kinds[c] not in ("integer", "text"):
            return False
        values = seed.values(c)
        return c in seed.keys or bool(_REFERENCE.fullmatch(seed.header[c])) or bool(values and values <= known)

    return [(seed, {c for c in range(len(seed.header)) if refers(seed, c)}) for seed in seeds]


def _repeated(seed: Seed, row: list[str], columns: set[int], n: int, step: int) -> list[str]:
    def value(c: int, text: str) -> str:
        if not n or not text:
            return text
        if c in columns:
            return str(int(text) + n * step) if seed.kinds[c] == "integer" else f"{text}-{n}"
        return _later(text, 61 * n) if seed.kinds[c] == "time" else text

    return [value(c, text) for c, text in enumerate(row)]


def change(seed: Seed, rng: random.Random, part: float = 0.03) -> int:
    """Inserts, updates and deletes rows: about this part of them, and at least one of each. Returns how many.

    Each column keeps its type: dbt loads a seed into the table that is there, as long as nobody asks for another one.
    """
    if not seed.rows:
        return 0
    typical = seed.typical
    count = max(1, round(part * len(seed.rows)))
    fresh = [_mutated(seed, rng.choice(seed.rows), rng, fresh=n) for n in range(count)]
    for _ in range(count):
        n = rng.randrange(len(seed.rows))
        seed.rows[n] = _mutated(seed, seed.rows[n], rng)
    gone = set(rng.sample(range(len(seed.rows)), min(count, len(seed.rows) - 1)))
    seed.rows = [row for n, row in enumerate(seed.rows) if n not in gone] + fresh
    for column, (type_, (was, text)) in enumerate(zip(seed.types(), typical, strict=True)):
        if type_ is not was and text is not None:
            seed.rows[-1][column] = text
    return 2 * count + len(gone)


def _mutated(seed: Seed, row: list[str], rng: random.Random, fresh: int | None = None) -> list[str]:
    """The row with other values in some columns; a fresh one, of this number, has keys of its own."""

    def value(c: int, text: str) -> str:
        if c in seed.keys:
            return text if fresh is None else _fresh(seed, c, text, rng, fresh)
        chance = rng.random()
        if chance < 0.08:
            return ""
        if seed.kinds[c] == "time" and text:
            return _later(text, rng.randrange(-200_000, 200_000)) if fresh is not None or chance < 0.4 else text
        if chance < 0.3:
            return rng.choice(seed.rows)[c]
        is_amount = not _REFERENCE.fullmatch(seed.header[c]) and text
        if chance < 0.5 and is_amount and seed.kinds[c] == "number":
            return f"{float(text) + rng.randrange(-500, 500) / 100:.2f}"
        return text

    return [value(c, text) for c, text in enumerate(row)]


def _fresh(seed: Seed, column: int, text: str, rng: random.Random, number: int) -> str:
    """A value that the column does not hold, nor any other new row."""
    if seed.kinds[column] == "integer":
        return str(max(map(int, seed.values(column))) + 50 * number + rng.randrange(1, 50))
    if seed.kinds[column] in ("time", "number"):
        return text
    return f"{text}-{number}-{rng.randrange(10**6)}"


def _later(text: str, seconds: int) -> str:
    try:
        moved = datetime.fromisoformat(text[:19]) + timedelta(seconds=seconds)
    except (ValueError, OverflowError):
        return text
    return moved.isoformat(sep=text[10]) + text[19:] if len(text) > 10 else moved.isoformat()[:10]
