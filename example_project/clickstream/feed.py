"""Visits of a web site, a JSON-lines file at a time."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

_DEVICES = ("phone", "phone", "desktop", "tablet", None)


class Feed:
    """Few pages get most visits."""

    def __init__(self, folder: Path, size: int = 60_000) -> None:
        self._folder = folder / "visits"
        self._size = size
        self._rng = random.Random(7)

    def start(self) -> dict[str, int]:
        """The first file."""
        return self._write("start", self._size)

    def advance(self, round: int, visits: int = 500) -> dict[str, int]:
        """One more file."""
        return self._write(f"round-{round:04d}", visits)

    def _write(self, name: str, count: int) -> dict[str, int]:
        self._folder.mkdir(parents=True, exist_ok=True)
        temporary = self._folder / f".{name}.tmp"
        with temporary.open("w") as out:
            for _ in range(count):
                visit = {
                    "url": f"/page/{int(self._rng.paretovariate(0.8)) % 2000}",
                    "user_id": int(self._rng.paretovariate(0.5)) % 20_000,
                    "device": self._rng.choice(_DEVICES),
                    "ms": self._rng.randint(1, 60_000),
                }
                out.write(json.dumps(visit) + "\n")
        os.replace(temporary, self._folder / f"{name}.json")
        return {"visits": count}
