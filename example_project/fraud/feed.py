"""Which account was used with which device: phones and cards of one's own, addresses of homes, of cafes, of networks.

Some accounts were made for fraud. A chain of devices makes a ring of them. Rings form, grow, merge, and split where a
device is cleared.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

_HOUSEHOLDS = (1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5)
_BUSIEST = 3000
"""Accounts at the busiest place; the one of rank r has a share of 1 / r ** 1.2 of them."""


class Feed:
    """Accounts are numbered as they live: neighbours have near numbers, and meet at the same small places."""

    def __init__(self, folder: Path, size: int = 19_000, rings: int = 60) -> None:
        self._folder = folder
        self._size = size
        self._first_rings = rings
        self._rng = random.Random(1867)
        self._accounts = 0
        self._devices = 0
        self._payments = 0
        self._clock = 1_700_000_000_000
        self._users: dict[str, list[int]] = {}
        self._homes: list[str] = []
        self._places: list[str] = []
        self._rings: list[list[str]] = []
        self._events: list[dict[str, Any]] = []

    def start(self) -> dict[str, int]:
        """Everybody at home and in town, and the first rings."""
        while self._accounts < self._size:
            home = self._new_home()
            for _ in range(self._rng.choice(_HOUSEHOLDS)):
                self._join(home)
        self._visit_places()
        for _ in range(self._first_rings):
            self._form()
        return self._write("start", payments=30_000)

    def advance(self, round: int) -> dict[str, int]:
        """Some 120 changes. A third of them says nothing new: a device was used again."""
        for _ in range(40):
            account, device = self._any_use()
            self._use(account, device)
        for _ in range(20):
            self._release(*self._any_use())
        for _ in range(15):
            rank = int(self._rng.paretovariate(0.5))
            self._use(self._rng.randint(1, self._accounts), self._places[rank % len(self._places)])
        for _ in range(6):
            self._join(self._rng.choice(self._homes) if self._rng.random() < 0.4 else self._new_home())
        changes: tuple[Callable[[], None], ...] = (self._split, self._merge, self._grow, self._grow, self._form)
        for change in changes:
            change()
        return self._write(f"round-{round:04d}", payments=100)

    def _new_account(self) -> int:
        self._accounts += 1
        return self._accounts

    def _new_device(self, kind: str) -> str:
        self._devices += 1
        device = f"{kind}-{self._devices:06d}"
        self._users[device] = []
        return device

    def _new_home(self) -> str:
        self._homes.append(self._new_device("address"))
        return self._homes[-1]

    def _join(self, home: str) -> None:
        """One more account in a household, with a phone or a card of its own."""
        account = self._new_account()
        self._use(account, home)
        self._use(account, self._new_device(self._rng.choice(["phone", "phone", "card"])))

    def _visit_places(self) -> None:
        """A few addresses are used by thousands, most by a few accounts that live near."""
        rank = 1
        while (users := int(_BUSIEST / rank**1.2)) >= 2:
            self._places.append(place := self._new_device("address"))
            reach = min(self._accounts, users * 10)
            first = self._rng.randint(1, self._accounts - reach + 1)
            for account in self._rng.sample(range(first, first + reach), users):
                self._use(account, place)
            rank += 1

    def _form(self) -> None:
        """A new ring: between each two neighbours in a chain of devices, up to three accounts that use both."""
        chain = [self._new_ring_device() for _ in range(self._rng.randint(2, 7))]
        for one, other in pairwise(chain):
            for _ in range(self._rng.randint(1, 3)):
                self._link(one, other)
        self._rings.append(chain)

    def _grow(self) -> None:
        """A ring takes in new accounts, and with them one more device at its end."""
        chain = self._rng.choice(self._rings)
        chain.append(self._new_ring_device())
        for _ in range(self._rng.randint(1, 3)):
            self._link(chain[-2], chain[-1])

    def _merge(self) -> None:
        """One account uses a device of either ring."""
        one, other = self._rng.sample(self._rings, 2)
        self._link(one[-1], other[0])
        self._rings.remove(other)
        one += other

    def _split(self) -> None:
        """A device in the middle of the longest ring is cleared, so that nobody uses it any more."""
        chain = max(self._rings, key=len)
        middle = len(chain) // 2
        for account in list(self._users[chain[middle]]):
            self._release(account, chain[middle])
        self._rings.remove(chain)
        self._rings += [part for part in (chain[:middle], chain[middle + 1 :]) if part]

    def _new_ring_device(self) -> str:
        return self._new_device(self._rng.choice(["phone", "card", "card"]))

    def _link(self, one: str, other: str) -> None:
        account = self._new_account()
        self._use(account, one)
        self._use(account, other)

    def _any_use(self) -> tuple[int, str]:
        """An account and a device that it uses; rarely one of a ring."""
        while True:
            device = f"{self._rng.choice(['phone', 'card', 'address'])}-{self._rng.randint(1, self._devices):06d}"
            if users := self._users.get(device):
                return self._rng.choice(users), device

    def _use(self, account: int, device: str) -> None:
        if account not in self._users[device]:
            self._users[device].append(account)
        self._event(account, device, "used")

    def _release(self, account: int, device: str) -> None:
        self._users[device].remove(account)
        self._event(account, device, "released")

    def _event(self, account: int, device: str, status: str) -> None:
        self._clock += 250
        kind = device.partition("-")[0]
        self._events.append(
            {"account": account, "device": device, "kind": kind, "used_at": self._clock, "status": status}
        )

    def _write(self, name: str, payments: int) -> dict[str, int]:
        events, self._events = self._events, []
        _replace(self._folder / "uses" / f"{name}.json", "".join(f"{json.dumps(event)}\n" for event in events))
        path = self._folder / "payments" / f"{name}.csv"
        _replace(path, "payment,account,amount\n" + "".join(self._payment() for _ in range(payments)))
        return {"uses": len(events), "payments": payments}

    def _payment(self) -> str:
        self._payments += 1
        account = self._rng.randint(1, self._accounts)
        return f"{self._payments},{account},{min(self._rng.paretovariate(0.9), 9999):.2f}\n"


def _replace(path: Path, text: str) -> None:
    """Written under another name first, so that a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text)
    os.replace(temporary, path)
