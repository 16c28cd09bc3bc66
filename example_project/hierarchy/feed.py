"""Two hierarchies that are reorganised: a firm's employees with managers, and Python packages with what they need.

The firm is generated. The packages are those that are installed, so they differ from one environment to another.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path

from example_project.hierarchy.packages import installed


class Feed:
    """Files under ``data/``: ``employees/<round>.json`` (upserts), ``packages/packages.csv`` and
    ``requirements/requirements.csv`` (whole, replaced when something changes)."""

    def __init__(self, folder: Path, size: int = 5_000) -> None:
        self._folder = folder
        self._staff = _Staff(size)
        self._packages = _Packages()

    def start(self) -> dict[str, int]:
        """Everybody who has been hired so far, and all packages."""
        return self._write("start")

    def advance(self, round: int) -> dict[str, int]:
        """A reorganisation, and some packages that need less than before, or again what they needed."""
        self._staff.reorganise()
        self._packages.change()
        return self._write(f"round-{round:04d}")

    def _write(self, name: str) -> dict[str, int]:
        employees, packages, requirements = self._staff.records(), self._packages.sizes(), self._packages.requirements()
        _replace(self._folder / "employees" / f"{name}.json", employees)
        _replace(self._folder / "packages" / "packages.csv", ["package,size", *packages])
        _replace(self._folder / "requirements" / "requirements.csv", ["package,requirement,optional", *requirements])
        return {"employees": len(employees), "packages": len(packages), "requirements": len(requirements)}


class _Staff:
    """A tree of at most ten levels below the chief. Who has reports gets more of them: some have many, most none."""

    _LEVELS = 10
    _MOST_REPORTS = 15

    def __init__(self, size: int) -> None:
        self._rng = random.Random(1926)
        self._clock = 1_700_000_000_000
        self._last = 1
        self._manager: dict[int, int | None] = {1: None}
        self._reports: dict[int, list[int]] = {1: []}
        self._salary = {1: 400_000.0}
        self._left: tuple[int, int] | None = None
        self._records: list[str] = []
        self._record(1)
        while self._last < size:
            self._hire()

    def reorganise(self) -> None:
        """Before anything else, the team of who left a round ago gets the next manager above."""
        if self._left:
            gone, above = self._left
            for employee in self._reports.pop(gone):
                self._place(employee, above)
        for _ in range(2):
            self._move_team()
        for _ in range(25):
            self._hire()
        for _ in range(40):
            self._raise(self._any(lambda employee: True))
        for _ in range(15):
            leaver = self._any(lambda employee: not self._reports[employee])
            self._leave(leaver)
            del self._reports[leaver]
        manager = self._any(lambda employee: employee > 1 and len(self._reports[employee]) > 2)
        self._left = manager, self._leave(manager)

    def records(self) -> list[str]:
        """What has been recorded since the last time."""
        records, self._records = self._records, []
        return records

    def _hire(self) -> None:
        """Nine in ten join somebody's team; the others report to whoever is met."""
        manager = 0
        while manager not in self._manager or not self._can_lead(manager):
            met = self._any(lambda employee: True)
            manager = met if self._rng.random() > 0.9 else self._manager[met] or met
        self._last += 1
        self._reports[self._last] = []
        self._salary[self._last] = max(30_000.0, self._salary[manager] * self._rng.uniform(0.6, 0.95))
        self._place(self._last, manager)

    def _can_lead(self, employee: int) -> bool:
        """One more."""
        return self._depth(employee) < self._LEVELS and len(self._reports[employee]) < self._MOST_REPORTS

    def _move_team(self) -> None:
        """A manager goes, with everybody below, to a manager who is not one of them."""
        team: list[list[int]] = []
        while not 10 <= sum(map(len, team)) <= 300:
            mover = self._any(lambda employee: employee > 1)
            team = self._team(mover)
        members = {employee for level in team for employee in level}
        deepest = self._LEVELS - len(team)
        self._place(
            mover,
            self._any(
                lambda employee: (
                    employee not in members
                    and employee != self._manager[mover]
                    and len(self._reports[employee]) > 0
                    and self._depth(employee) <= deepest
                )
            ),
        )

    def _raise(self, employee: int) -> None:
        self._salary[employee] *= 1.03
        self._record(employee)

    def _leave(self, employee: int) -> int:
        """Their manager is returned; their team keeps the number of who is gone."""
        manager = self._manager[employee]
        assert manager is not None
        self._reports[manager].remove(employee)
        self._record(employee, "left")
        del self._manager[employee]
        return manager

    def _place(self, employee: int, manager: int) -> None:
        former = self._manager.get(employee)
        if former is not None and former in self._manager:
            self._reports[former].remove(employee)
        self._manager[employee] = manager
        self._reports[manager].append(employee)
        self._record(employee)

    def _any(self, condition: Callable[[int], bool]) -> int:
        while True:
            employee = self._rng.randint(1, self._last)
            if employee in self._manager and condition(employee):
                return employee

    def _depth(self, employee: int) -> int:
        manager, depth = self._manager[employee], 0
        while manager is not None:
            manager, depth = self._manager[manager], depth + 1
        return depth

    def _team(self, employee: int) -> list[list[int]]:
        """Level by level, from the employee down."""
        levels = [[employee]]
        while below := [report for member in levels[-1] for report in self._reports[member]]:
            levels.append(below)
        return levels

    def _record(self, employee: int, status: str = "employed") -> None:
        self._clock += 1000
        record = {
            "employee": employee,
            "manager": self._manager[employee],
            "salary": f"{self._salary[employee]:.2f}",
            "changed_at": self._clock,
            "status": status,
        }
        self._records.append(json.dumps(record))


class _Packages:
    """What is installed, and which requirements are dropped for now."""

    def __init__(self) -> None:
        self._rng = random.Random(1991)
        self._sizes, self._requirements = installed()
        self._dropped: list[list[tuple[str, str]]] = []

    def change(self) -> None:
        """Six requirements go, and come back two rounds later; a package has a new release, which is larger."""
        dropped = {requirement for round in self._dropped[-1:] for requirement in round}
        there = [requirement for requirement in self._requirements if requirement not in dropped]
        self._dropped = [*self._dropped[-1:], self._rng.sample(there, min(6, len(there)))]
        self._sizes[self._rng.choice(list(self._sizes))] += 1000

    def sizes(self) -> list[str]:
        """Lines of a CSV file."""
        return [f"{package},{size}" for package, size in self._sizes.items()]

    def requirements(self) -> list[str]:
        """Lines of a CSV file."""
        dropped = {requirement for round in self._dropped for requirement in round}
        return [
            f"{package},{requirement},{str(optional).lower()}"
            for (package, requirement), optional in self._requirements.items()
            if (package, requirement) not in dropped
        ]


def _replace(path: Path, lines: list[str]) -> None:
    """Written under another name first, so that a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text("".join(f"{line}\n" for line in lines))
    os.replace(temporary, path)
