"""The collections of the example projects `wikirecent` and `clickstream`, written without Spark."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.serve.pages.written import Written

Visit = tuple[int, str, str | None, int]
"""user_id, url, device, ms"""


class Wikirecent:
    """Edits by editor, and what the models make of them."""

    def __init__(self, root: Path) -> None:
        source = "wikimedia.recentchange"
        columns = {"id": "long", "type": "string", "title": "string", "timestamp": "long", "user": "string"}
        self.source = Written(root, source, columns, kind="source")
        self.counter = Written(root, "wikirecent.counter", {"edits": "long"}, inputs=[source])
        editors = {"user": "string", "edits": "long", "last_seen": "long"}
        self.editors = Written(root, "wikirecent.editors", editors, inputs=[source])
        top = {"user": "string", "edits": "long"}
        self.top10 = Written(root, "wikirecent.top10", top, inputs=["wikirecent.editors"])
        self._edits: Counter[str] = Counter()
        self._seen: dict[str, int] = {}
        self._last = 0

    def edit(self, edits: Iterable[str], at: int | None = None) -> int:
        """Edits by these users; a user whose name is given with a minus takes one back."""
        changes = {}
        users = list(edits)
        for user in users:
            self._last += 1
            self._edits[user.removeprefix("-")] += -1 if user.startswith("-") else 1
            self._seen[user.removeprefix("-")] = 1_700_000_000 + self._last // 20
            changes[self._last, "edit", f"Page {self._last % 5000}", 1_700_000_000 + self._last // 20, user] = 1
        t = self.source.change(changes, at)
        self._edits = +self._edits
        self.counter.become([(self._edits.total(),)], t)
        self.editors.become([(user, count, self._seen[user]) for user, count in self._edits.items()], t)
        return self.top10.become(self.top(), t)

    def top(self) -> list[tuple[str, int]]:
        """The ten with the most edits, the first one first."""
        return sorted(self._edits.items(), key=lambda one: (-one[1], one[0]))[:10]


class Clickstream:
    """Visits, and how many there are by what."""

    def __init__(self, root: Path) -> None:
        source = "web.visits"
        columns = {"user_id": "long", "url": "string", "device": "string", "ms": "long"}
        self.source = Written(root, source, columns, kind="source")
        by_url = {"url": "string", "visits": "long", "ms": "long"}
        self.by_url = Written(root, "clickstream.visits_by_url", by_url, inputs=[source])
        by_device = {"url": "string", "device": "string", "visits": "long"}
        self.by_url_device = Written(root, "clickstream.visits_by_url_device", by_device, inputs=[source])
        by_user = {"user_id": "long", "url": "string", "device": "string", "visits": "long", "longest": "long"}
        self.by_user = Written(root, "clickstream.visits_by_user_url_device", by_user, inputs=[source])
        self._visits: Counter[Visit] = Counter()

    def visit(self, visits: Iterable[Visit], at: int | None = None) -> int:
        """More visits."""
        new = Counter(visits)
        self._visits += new
        t = self.source.change(new, at)
        urls: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        devices: Counter[tuple[str, str | None]] = Counter()
        users: dict[tuple[int, str, str | None], list[int]] = defaultdict(lambda: [0, 0])
        for (user, url, device, ms), count in self._visits.items():
            urls[url][0] += count
            urls[url][1] += ms * count
            devices[url, device] += count
            one = users[user, url, device]
            one[0], one[1] = one[0] + count, max(one[1], ms)
        self.by_url.become([(url, *told) for url, told in urls.items()], t)
        self.by_url_device.become([(*key, count) for key, count in devices.items()], t)
        return self.by_user.become([(*key, *told) for key, told in users.items()], t)
