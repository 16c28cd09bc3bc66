"""Writes TPC-DI's files: the historical load, and a batch for each day after it.

``python -m benchmarks.tpcdi.generator FOLDER --scale 1 --days 3``

    <folder>/<table>/<day>.<txt|csv|xml>    day 0000 is the historical load
    <folder>/prospect/prospect.csv          each day's replaces the one before

Rows of what changes begin with CDC_FLAG (I, U or D) and CDC_DSN, their number in the order of all changes; here those
of the historical load, too, so that one reader is enough. Where a table has no key, a row that changes is deleted and
inserted, both whole. A file may come a second time, under a later name.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from benchmarks.tpcdi.chance import Chance, Longs
from benchmarks.tpcdi.lifetime import Lifetime, Shares
from benchmarks.tpcdi.market import Market
from benchmarks.tpcdi.people import People
from benchmarks.tpcdi.reference import write_reference
from benchmarks.tpcdi.sizes import FIRST_DAY, Sizes, date_of
from benchmarks.tpcdi.trades import Columns, Trades

_HISTORY_PRICES = 260
"""Days of prices in the historical load, a year and a little: what 52-week extremes look back on."""
_MIXED = Shares(inserts=0.01, updates=0.005, deletes=0.005)


@dataclass(frozen=True)
class Generator:
    """``shares``: of trades, accounts, customers and watches that change in a day."""

    folder: Path
    scale: float
    shares: Shares = _MIXED
    seed: int = 1
    sizes: Sizes = field(init=False)
    market: Market = field(init=False)
    people: People = field(init=False)
    trades: Trades = field(init=False)

    def __post_init__(self) -> None:
        sizes = Sizes(self.scale)
        keep = object.__setattr__
        keep(self, "sizes", sizes)
        keep(self, "market", Market(self.seed, sizes))
        accounts = self._lives("account", sizes.accounts)
        keep(self, "people", People(self.seed, sizes, self._lives("customer", sizes.customers), accounts))
        lives = accounts, self._lives("trade", sizes.trades), self._lives("watch", sizes.watches)
        keep(self, "trades", Trades(self.seed, self.market, *lives))

    def _lives(self, table: str, initial: int) -> Lifetime:
        return Lifetime(Chance(self.seed, table), initial, self.shares)

    def historical(self) -> None:
        """Day 0."""
        write_reference(self.folder)
        self._lines("finwire", 0, "txt", self.market.finwire(FIRST_DAY, date_of(0)))
        self._lines("customer_mgmt", 0, "xml", self.people.management())
        self._table("hr", 0, self.people.staff(), ",", "csv")
        rows = self.trades.trades.inserted(0)
        self._columns("trade", 0, _with("I", 0, self.trades.trade(rows, 0)))
        self._columns("trade_history", 0, self.trades.steps(rows))
        self._columns("cash_transaction", 0, _with("I", 0, self.trades.cash(rows, 0)))
        self._columns("holding_history", 0, _with("I", 0, self.trades.holdings(rows, 0)))
        self._columns("watch_history", 0, _with("I", 0, self.trades.watch(self.trades.watches.inserted(0))))
        self._table("daily_market", 0, self.market.prices(np.arange(1 - _HISTORY_PRICES, 1)), "|", "txt")
        self._prospects(0)
        self._lines("batch_date", 0, "txt", [f"{date_of(0)}\n"])
        for later in ("customer", "account"):  # up to now they are in customer_mgmt
            (self.folder / later).mkdir(exist_ok=True)

    def batch(self, day: int) -> dict[str, int]:
        """A later day. Returns the numbers of rows inserted, updated and deleted, of all tables."""
        people, trades = self.people, self.trades
        self._keyed("customer", day, people.customers, people.customer)
        self._keyed("account", day, people.accounts, people.account)
        self._keyed("trade", day, trades.trades, trades.trade)
        self._whole("cash_transaction", day, trades.cash)
        self._whole("holding_history", day, trades.holdings)
        self._columns("watch_history", day, _with("I", day, trades.watch(trades.watches.inserted(day))))
        self._table("daily_market", day, self.market.prices(np.array([day])), "|", "txt")
        self._columns("trade_history", day, trades.steps(trades.trades.inserted(day)))
        self._prospects(day)
        self._lines("finwire", day, "txt", self.market.finwire(date_of(day), date_of(day)))
        self._lines("batch_date", day, "txt", [f"{date_of(day)}\n"])
        lives = (people.customers, people.accounts, trades.trades)
        kinds = {"inserted": Lifetime.inserted, "updated": Lifetime.updated, "deleted": Lifetime.deleted}
        return {name: sum(len(rows(life, day)) for life in lives) for name, rows in kinds.items()}

    def _prospects(self, day: int) -> None:
        self._table("prospect", day, self.people.prospects(day), ",", "csv")
        made = self._path("prospect", day, "csv")
        made.replace(made.with_name("prospect.csv"))

    def redelivered(self, table: str, day: int, later: int) -> None:
        """A day's file once more, beside that of a later day."""
        (source,) = (self.folder / table).glob(f"{day:04}.*")
        (self.folder / table / f"{later:04}-again-{source.name}").write_bytes(source.read_bytes())

    def _keyed(self, table: str, day: int, life: Lifetime, columns: Callable[[Longs, int], Mapping[str, Any]]) -> None:
        """Inserts and updates as they are now, deletes as they were."""
        parts = [("I", columns(life.inserted(day), day)), ("U", columns(life.updated(day), day))]
        parts.append(("D", columns(life.deleted(day), day - 1)))
        self._columns(table, day, _joined([_with(flag, day, part) for flag, part in parts]))

    def _whole(self, table: str, day: int, columns: Callable[[Longs, int], Columns]) -> None:
        """Rows without a key, that follow from trades."""
        life = self.trades.trades
        changed, gone = life.updated(day), np.concatenate([life.updated(day), life.deleted(day)])
        parts = [("D", columns(gone, day - 1)), ("I", columns(np.concatenate([life.inserted(day), changed]), day))]
        self._columns(table, day, _joined([_with(flag, day, part) for flag, part in parts]))

    def _columns(self, table: str, day: int, columns: Mapping[str, Any]) -> None:
        self._table(table, day, pa.table(dict(columns)), "|", "txt")

    def _table(self, name: str, day: int, table: pa.Table, delimiter: str, suffix: str) -> None:
        options = pc.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")
        pc.write_csv(table, self._path(name, day, suffix), options)

    def _lines(self, name: str, day: int, suffix: str, lines: Iterable[str]) -> None:
        with self._path(name, day, suffix).open("w") as file:
            for line in lines:
                file.write(line if line.endswith("\n") else f"{line}\n")

    def _path(self, name: str, day: int, suffix: str) -> Path:
        (self.folder / name).mkdir(parents=True, exist_ok=True)
        return self.folder / name / f"{day:04}.{suffix}"


def _with(flag: str, day: int, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns behind CDC_FLAG and CDC_DSN."""
    count = len(next(iter(columns.values())))
    number = np.arange(count) + day * 100_000_000 + {"I": 0, "U": 30_000_000, "D": 60_000_000}[flag]
    return {"CDC_FLAG": np.full(count, flag), "CDC_DSN": number.astype(str), **columns}


def _joined(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def main() -> int:
    """Writes the historical load and some days."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=float, default=1.0, help="scale factor (default: 1)")
    parser.add_argument("--days", type=int, default=3, help="batches after the historical load (default: 3)")
    options = parser.parse_args()
    made = Generator(options.folder, options.scale)
    made.historical()
    for day in range(1, options.days + 1):
        print(f"{date_of(day)}: {made.batch(day)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
