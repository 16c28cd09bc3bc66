"""What became of each model of a project, over all rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.projects.project import Ran


class Report:
    """Built up round by round. ``wrong``: why a model differs from its table. ``filled``: models
    that had rows in some round. ``determined``: of a model that Spark may
    answer in several ways, the columns in which all answers are the same."""

    def __init__(self, project: str, models: Sequence[str], removed: Mapping[str, Sequence[str]]) -> None:
        self.project = project
        self.models = list(models)
        self.removed = removed
        self.wrong: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self.no_table: dict[str, str] = {}
        self.determined: dict[str, list[str]] = {}
        self.undetermined: dict[str, list[str]] = {}
        self.rounded: set[str] = set()
        self.reordered: set[str] = set()
        """Models with their table's columns in another order, since their SQL, or that of a model which they read, was
        rendered with a list that Spark gives in any order."""
        self.filled: set[str] = set()
        self.seconds: list[float] = []
        self.table_seconds: list[float] = []
        self._runs: dict[str, list[Ran]] = {name: [] for name in models}

    def built(self, number: int, seconds: float, ran: Sequence[Ran]) -> None:
        """A round's tables. What is no table in the first round is not compared in any."""
        self.table_seconds.append(seconds)
        for one in ran:
            if one.status != "success" and one.unique_id in self._runs:
                why = one.message if one.status == "error" else "a parent is no table"
                self.no_table.setdefault(one.unique_id, why)

    def refuse(self, one: Ran) -> bool:
        """Whether a model that failed in the first round is refused: its table can be built."""
        if one.unique_id in self.no_table or one.unique_id in self.refused or one.unique_id not in self._runs:
            return False
        self.refused[one.unique_id] = _reason(one.message)
        return True

    def ran(self, number: int, seconds: float, ran: Sequence[Ran]) -> None:
        """A round's differential run."""
        self.seconds.append(seconds)
        for one in ran:
            if one.unique_id not in self._runs or one.unique_id in self.no_table:
                continue
            self._runs[one.unique_id].append(one)
            if one.status != "success":
                self.differ(one.unique_id, f"round {number}: {one.status}, {_reason(one.message)}")

    def comparable(self, number: int) -> list[str]:
        """Models of which both relations are there."""
        known = [name for name in self.models if len(self._runs[name]) > number]
        return [name for name in known if name not in self.no_table and name not in self.wrong]

    def exact(self) -> list[str]:
        """Differential models whose answer is but one, to the last digit."""
        loose = {*self.wrong, *self.refused, *self.no_table, *self.rounded, *self.undetermined}
        return [name for name in self.models if name not in loose]

    def differ(self, name: str, why: str) -> None:
        """A model is wrong; the first reason counts."""
        self.wrong.setdefault(name, why)

    def round(self, name: str) -> None:
        """A model equals its table but for the order of sums of doubles, or for columns that are not determined."""
        if name not in self.undetermined:
            self.rounded.add(name)

    def determine(self, name: str, columns: Sequence[str], of: Sequence[str]) -> None:
        """Two builds of a model's table are the same in these columns alone."""
        known = self.determined.get(name, list(of))
        self.determined[name] = [column for column in known if column in columns]
        others = [column for column in of if column not in self.determined[name]]
        if others:
            self.undetermined[name] = others
            self.rounded.discard(name)

    @property
    def says_little(self) -> bool:
        """Whether fewer than half of the models have a table to be compared with."""
        return 2 * len(self.no_table) > len(self.models) or not self.models

    def how(self, name: str) -> str:
        """In one word how a model was kept up to date."""
        if name in self.no_table:
            return "no table"
        if name in self.refused:
            return "refused"
        later = self._runs[name][1:]
        if any(one.fallbacks for one in self._runs[name]):
            return "recomputed"
        return "rebuilt" if any(one.strategy not in ("delta", "skip") for one in later) else "by deltas"

    def count(self, word: str) -> int:
        """How many models were kept up to date so."""
        return sum(self.how(name) == word for name in self.models)

    def facts(self) -> dict[str, Any]:
        """All that is known, as JSON has it."""
        models = {
            name: {
                "how": self.how(name),
                "strategies": [one.strategy for one in self._runs[name]],
                "why": self.wrong.get(name) or self.refused.get(name) or self.no_table.get(name) or "",
                "fallbacks": sorted({why for one in self._runs[name] for why in one.fallbacks}),
                "has_rows": name in self.filled,
                "undetermined": self.undetermined.get(name, []),
                "removed": list(self.removed.get(name, ())),
                "messages": [one.message for one in self._runs[name]],
            }
            for name in self.models
        }
        return {"project": self.project, "seconds": self.seconds, "tables": self.table_seconds, "models": models}

    def text(self) -> str:
        """A table of one row, and a line for each model that is not simply exact and by deltas."""
        words = ("by deltas", "recomputed", "rebuilt", "refused", "no table")
        compared = len(self.models) - len(self.no_table)
        row = {
            "project": self.project,
            "models": str(len(self.models)),
            **{word: str(self.count(word)) for word in words},
            "exact": f"{compared - len(self.wrong)} of {compared}",
            "empty": str(compared - len(self.filled)),
            "rounds": str(len(self.seconds) - 1),
            "differential": _seconds(self.seconds),
            "table": _seconds(self.table_seconds),
        }
        widths = {key: max(len(key), len(value)) for key, value in row.items()}
        padded = [[key.ljust(widths[key]), value.ljust(widths[key])] for key, value in row.items()]
        lines = ["  ".join(line) for line in zip(*padded, strict=True)]
        return "\n".join([*lines, *self._lines()])

    def _lines(self) -> list[str]:
        lines = [f"  {name}: DIFFERS, {why}" for name, why in self.wrong.items()]
        lines += [f"  {name}: refused, {why}" for name, why in self.refused.items()]
        lines += [f"  {name}: no table, {_reason(why)}" for name, why in self.no_table.items()]
        for name in self.models:
            if self.how(name) == "recomputed":
                whys = sorted({why for one in self._runs[name] for why in one.fallbacks})
                lines.append(f"  {name}: recomputed, {'; '.join(whys)}")
            elif self.how(name) == "rebuilt":
                lines.append(f"  {name}: {', '.join(one.strategy for one in self._runs[name])}")
        for name, columns in self.undetermined.items():
            lines.append(f"  {name}: exact but for {', '.join(columns)}, of which the SQL allows several values")
        lines += [
            f"  {name}: columns in another order than its table's: their SQL differs"
            for name in sorted(self.reordered - {*self.wrong})
        ]
        lines += [f"  {name}: exact to ten digits of its doubles" for name in sorted(self.rounded - {*self.wrong})]
        lines += [f"  {name}: without its {', '.join(keys)}" for name, keys in self.removed.items()]
        return lines


def _seconds(rounds: Sequence[float]) -> str:
    first, *later = rounds
    return f"{first:.1f}; {' '.join(f'{one:.1f}' for one in later)}" if later else f"{first:.1f}"


def _reason(message: str) -> str:
    lines = [line.strip() for line in message.strip().splitlines() if line.strip()]
    shown = lines[1:] if len(lines) > 1 and " Error in model " in lines[0] else lines
    return " ".join(shown)[:300]
