"""A suite of analytic queries over TPC-H's tables, made from a seed."""

from __future__ import annotations

from itertools import count as numbers

from benchmarks.generated.draw import Draw
from benchmarks.generated.shapes import SHAPES


def queries(seed: int = 1, count: int = 50) -> dict[str, str]:
    """So many different queries by name, ``g01`` and so on; the shapes take turns. The same seed makes the same ones.

    A query's first line is a comment that tells its shape.
    """
    found: dict[str, str] = {}
    for i in range(count):
        shape = SHAPES[i % len(SHAPES)]
        texts = (shape(Draw(f"{seed}:{i}:{attempt}")) for attempt in numbers())
        text = next(f"-- {shape.__name__}\n{text}\n" for text in texts if text not in found.values())
        found[f"g{i + 1:02}"] = text
    return found


def shape_of(sql: str) -> str:
    """The name of a query's shape."""
    return sql.partition("\n")[0].removeprefix("-- ")
