"""Trades with what follows from them: their history, cash and holdings; and the symbols that customers watch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.tpcdi.chance import Chance, Floats, Longs, Texts
from benchmarks.tpcdi.lifetime import Lifetime
from benchmarks.tpcdi.market import Market
from benchmarks.tpcdi.reference import TRADE_TYPES
from benchmarks.tpcdi.sizes import HISTORY, LAST_DAY

Columns = dict[str, np.ndarray]  # type: ignore[type-arg]
_SELLS = tuple(int(TRADE_TYPES[name][1]) for name in TRADE_TYPES)
_CANCELED = 0.05


@dataclass(frozen=True)
class Trades:
    """Trades by number. An account's own day is that of the batch in which the trade came."""

    seed: int
    market: Market
    accounts: Lifetime
    trades: Lifetime
    watches: Lifetime

    def trade(self, rows: Longs, day: int) -> Columns:
        """The trades' columns after a day's batch, in the order of Trade.txt."""
        chance, now = Chance(self.seed, "trade"), rows * 512 + self.trades.version(rows, day)
        price, quantity = self._price(rows), 100 * chance.number("quantity", now, 1, 80)
        value = price * quantity
        is_done = self._is_done(rows)
        return {
            "T_ID": (rows + 1).astype(str),
            "T_DTS": _text(self.at(rows) + 60 * self._waits(rows)),
            "T_ST_ID": np.where(is_done, "CMPT", "CNCL"),
            "T_TT_ID": self._kind(rows),
            "T_IS_CASH": (chance.share("cash", rows) < 0.8).astype(int).astype(str),
            "T_S_SYMB": self.market.symbols[self._security(rows)],
            "T_QTY": quantity.astype(str),
            "T_BID_PRICE": _money(price * 1.01),
            "T_CA_ID": (1 + self._account(rows)).astype(str),
            "T_EXEC_NAME": np.char.add("Broker ", chance.number("executor", rows, 1, 900).astype(str)),
            "T_TRADE_PRICE": np.where(is_done, _money(price), ""),
            "T_CHRG": np.where(is_done, _money(np.minimum(value * 0.002, 30)), ""),
            "T_COMM": np.where(is_done, _money(value * (0.001 + 0.004 * chance.share("commission", now))), ""),
            "T_TAX": np.where(is_done, _money(value * 0.02 * (chance.share("taxed", rows) < 0.4)), ""),
        }

    def steps(self, rows: Longs) -> Columns:
        """TH_T_ID, TH_DTS and TH_ST_ID: limit orders were pending first, all were submitted, and ended somehow."""
        at, waits, is_limit = self.at(rows), self._waits(rows), np.char.startswith(self._kind(rows), "TL")
        parts = [
            (rows[is_limit], at[is_limit], "PNDG"),
            (rows, at + 30 * waits, "SBMT"),
            (rows, at + 60 * waits, np.where(self._is_done(rows), "CMPT", "CNCL")),
        ]
        ids, times = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        kinds = np.concatenate([np.broadcast_to(part[2], len(part[0])) for part in parts])
        order = np.lexsort((times, ids))
        return {"TH_T_ID": (ids + 1).astype(str)[order], "TH_DTS": _text(times[order]), "TH_ST_ID": kinds[order]}

    def cash(self, rows: Longs, day: int) -> Columns:
        """CT_CA_ID, CT_DTS, CT_AMT and CT_NAME: of completed trades."""
        rows = rows[self._is_done(rows)]
        trade = self.trade(rows, day)
        value = trade["T_TRADE_PRICE"].astype(np.float64) * trade["T_QTY"].astype(np.float64)
        sign = np.where(self._sells(rows), 1, -1)
        return {
            "CT_CA_ID": trade["T_CA_ID"],
            "CT_DTS": _text(self.at(rows) + 86_400),
            "CT_AMT": _money(sign * value),
            "CT_NAME": np.char.add("Trade ", trade["T_ID"]),
        }

    def holdings(self, rows: Longs, day: int) -> Columns:
        """HH_H_T_ID, HH_T_ID, HH_BEFORE_QTY and HH_AFTER_QTY: of completed trades. What is sold was bought before."""
        rows = rows[self._is_done(rows)]
        trade, sells = self.trade(rows, day), self._sells(rows)
        back = 1 + Chance(self.seed, "trade").number("opened", rows, 0, 1_000)
        quantity = trade["T_QTY"].astype(np.int64)
        return {
            "HH_H_T_ID": np.where(sells, np.maximum(rows - back, 0) + 1, rows + 1).astype(str),
            "HH_T_ID": trade["T_ID"],
            "HH_BEFORE_QTY": np.where(sells, 2 * quantity, 0).astype(str),
            "HH_AFTER_QTY": quantity.astype(str),
        }

    def watch(self, rows: Longs) -> Columns:
        """W_C_ID, W_S_SYMB, W_DTS and W_ACTION: a third of what somebody watches is given up later."""
        chance, customers = Chance(self.seed, "watch"), self.market.sizes.customers
        at = _moments(self.watches, chance, rows)
        ends = rows[chance.share("given up", rows) < 0.33]
        both = np.concatenate([rows, ends])
        times = np.concatenate([at, _moments(self.watches, chance, ends) + 3_600])
        actions = np.repeat(["ACTV", "CNCL"], [len(rows), len(ends)])
        symbols = self.market.symbols[chance.number("security", both, 0, len(self.market.symbols))]
        order = np.lexsort((both, times))
        return {
            "W_C_ID": (1 + chance.number("customer", both, 0, customers)).astype(str)[order],
            "W_S_SYMB": symbols[order],
            "W_DTS": _text(times[order]),
            "W_ACTION": actions[order],
        }

    def at(self, rows: Longs) -> Longs:
        """When they were ordered (s since the historical load's last midnight)."""
        return _moments(self.trades, Chance(self.seed, "trade"), rows)

    def _price(self, rows: Longs) -> Floats:
        return self.market.price(self._security(rows), self.at(rows) // 86_400)

    def _security(self, rows: Longs) -> Longs:
        return Chance(self.seed, "trade").skewed("security", rows, len(self.market.symbols))

    def _account(self, rows: Longs) -> Longs:
        return Chance(self.seed, "trade").skewed("account", rows, self.accounts.initial, 1.5)

    def _kind(self, rows: Longs) -> Texts:
        return Chance(self.seed, "trade").one("kind", rows, [*TRADE_TYPES])

    def _sells(self, rows: Longs) -> Longs:
        return np.asarray(_SELLS)[Chance(self.seed, "trade").number("kind", rows, 0, len(_SELLS))]

    def _waits(self, rows: Longs) -> Longs:
        """Minutes until it ends."""
        return Chance(self.seed, "trade").number("waits", rows, 1, 300)

    def _is_done(self, rows: Longs) -> np.ndarray:  # type: ignore[type-arg]
        return Chance(self.seed, "trade").share("canceled", rows) >= _CANCELED


def _moments(lifetime: Lifetime, chance: Chance, rows: Longs) -> Longs:
    """Those of the historical load are spread over its days; later ones are of their batch's day, or of one of the ten
    before it where they come late (one of twenty)."""
    came = lifetime.came_on(rows)
    old = -(chance.share("day", rows) * (HISTORY - 2)).astype(np.int64)
    late = chance.number("late by", rows, 1, 10) * (chance.share("late", rows) < 0.05)
    day = np.where(came == 0, old, came - late)
    found: Longs = day * 86_400 + chance.number("second", rows, 34_200, 57_600)
    return found


def _text(seconds: Longs) -> Texts:
    """Moments as TPC-DI's files have them."""
    times = np.datetime64(LAST_DAY, "s") + seconds.astype("timedelta64[s]")
    texts = times.astype(str)
    return np.char.replace(texts, "T", " ") if len(texts) else texts


def _money(values: Floats) -> Texts:
    return np.char.mod("%.2f", values)
