"""Edits as Wikimedia's recentchange stream sends them, appended to one growing file of JSON lines.

The real stream, where there is a network, has the same form:

    curl -sN -H 'Accept: application/json' https://stream.wikimedia.org/v2/stream/recentchange \\
        >> data/recentchange.jsonl
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

_WIKIS = ("enwiki", "dewiki", "frwiki", "commonswiki", "wikidatawiki")
_TYPES = ("edit", "edit", "edit", "new", "log", "categorize")


class Feed:
    """A few editors do most of the work, as on the real wikis."""

    def __init__(self, folder: Path, size: int = 40_000) -> None:
        self._path = folder / "recentchange.jsonl"
        self._size = size
        self._rng = random.Random(42)
        self._next = 1

    def start(self) -> dict[str, int]:
        """The first events."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text("")
        return self.append(self._size)

    def advance(self, round: int) -> dict[str, int]:
        """More events, one of them only half written yet."""
        return self.append(200 + 50 * round)

    def append(self, count: int, busy: int | None = None) -> dict[str, int]:
        """Events; half of them by one editor, where one is ``busy``."""
        with self._path.open("a") as out:
            for _ in range(count):
                out.write(json.dumps(self._event(busy)) + "\n")
        return {"events": count}

    def _event(self, busy: int | None) -> dict[str, Any]:
        rng, number = self._rng, self._next
        self._next += 1
        editor = int(rng.paretovariate(0.6))
        if busy is not None and rng.random() < 0.5:
            editor = busy
        wiki = rng.choice(_WIKIS)
        return {
            "$schema": "/mediawiki/recentchange/1.0.0",
            "meta": {"id": f"{number:032x}", "domain": f"{wiki[:2]}.wikipedia.org", "stream": "mediawiki.recentchange"},
            "id": number,
            "type": rng.choice(_TYPES),
            "namespace": rng.choice([0, 0, 0, 1, 14]),
            "title": f"Page {rng.randint(1, 5000)}",
            "comment": "",
            "timestamp": 1_700_000_000 + number // 20,
            "user": f"Editor {editor % 100_000}",
            "bot": editor % 17 == 0,
            "minor": rng.random() < 0.2,
            "wiki": wiki,
            "server_name": f"{wiki[:2]}.wikipedia.org",
        }
