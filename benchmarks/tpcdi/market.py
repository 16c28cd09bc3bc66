"""Companies and their securities: FINWIRE's records, each of fixed width, and the market's daily prices."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.tpcdi.chance import Chance, Floats, Longs, Texts
from benchmarks.tpcdi.reference import INDUSTRIES
from benchmarks.tpcdi.sizes import FIRST_DAY, HISTORY, Sizes, date_of

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FIRST_NAMES = ("Alpine", "Baltic", "Cedar", "Delta", "Eastern", "Falcon", "Granite", "Harbor", "Island", "Juniper")
_LAST_NAMES = ("Foundry", "Holdings", "Instruments", "Logistics", "Mills", "Partners", "Systems", "Works")
_RATINGS = ("AAA", "AA", "AA+", "A", "A-", "BBB", "BB", "B+", "CCC", "D")
_EXCHANGES = ("NYSE", "NASDAQ", "AMEX", "PCX")
_ISSUES = ("COMMON", "PREF_A", "PREF_B", "PREF_C", "PREF_D")
_CITIES = (("Springfield", "IL"), ("Portland", "OR"), ("Columbus", "OH"), ("Austin", "TX"), ("Madison", "WI"))


def symbol(security: int) -> str:
    """A security's ticker, of four letters or more."""
    text = ""
    while security or len(text) < 4:
        security, letter = divmod(security, 26)
        text = _LETTERS[letter] + text
    return text


@dataclass(frozen=True)
class Market:
    """All that is known of companies and securities."""

    seed: int
    sizes: Sizes

    @property
    def symbols(self) -> Texts:
        """The tickers by number."""
        return np.asarray([symbol(number) for number in range(self.sizes.securities)])

    def company_of(self, securities: Longs) -> Longs:
        """Whose they are; the first ones are one of each company."""
        chance, companies = Chance(self.seed, "security"), self.sizes.companies
        other = chance.number("company", securities, 0, companies)
        return np.where(securities < companies, securities, other)

    def finwire(self, first: datetime.date, last: datetime.date) -> Iterator[str]:
        """The records that were posted in these days, in the order of their times. A company's come before its
        securities' and its results'."""
        records: list[tuple[datetime.datetime, int, str]] = []
        for company in range(self.sizes.companies):
            records += self._of_company(company)
        for security in range(self.sizes.securities):
            records += self._of_security(security)
        for at, _, text in sorted(one for one in records if first <= one[0].date() <= last):
            yield f"{at:%Y%m%d-%H%M%S}{text}"

    def _of_company(self, number: int) -> Iterator[tuple[datetime.datetime, int, str]]:
        chance, row = Chance(self.seed, "company"), np.array([number])
        name, cik = self.name(number), f"{number + 1:010}"
        for version in range(1 + int(chance.number("changes", row, 0, 4)[0])):
            at = self._posted("company", number, version)
            of = row * 64 + version
            rating, industry = chance.one("rating", of, _RATINGS)[0], chance.one("industry", row, [*INDUSTRIES])[0]
            city, state = _CITIES[int(chance.number("city", of, 0, len(_CITIES))[0])]
            status = "INAC" if version == 3 else "ACTV"
            founded = FIRST_DAY - datetime.timedelta(int(chance.number("founded", row, 900, 40_000)[0]))
            address = f"{1 + number % 900} Market Street", "", f"{10_000 + number % 80_000}", city, state
            text = f"CMP{name:60}{cik}{status}{industry:2}{rating:4}{founded:%Y%m%d}"
            widths = zip(address, (80, 80, 12, 25, 20), strict=True)
            text += "".join(f"{part:{width}}" for part, width in widths)
            yield at, 0, text + f"{'United States of America':24}{f'Chief of {name}':46}{f'What {name} does':150}"
        yield from self._results(number, cik)

    def name(self, company: int) -> str:
        """A company's name."""
        first, rest = _FIRST_NAMES[company % len(_FIRST_NAMES)], company // len(_FIRST_NAMES)
        return f"{first} {_LAST_NAMES[rest % len(_LAST_NAMES)]} {rest // len(_LAST_NAMES) + 1}"

    def _results(self, number: int, cik: str) -> Iterator[tuple[datetime.datetime, int, str]]:
        """Of each quarter, posted some days after it has ended; named by the company's number or its name."""
        chance = Chance(self.seed, "result")
        for quarter in range(4 * 11):
            start = datetime.date(FIRST_DAY.year + quarter // 4, 1 + 3 * (quarter % 4), 1)
            row = np.array([number * 64 + quarter])
            posted = start + datetime.timedelta(92 + int(chance.number("days", row, 3, 40)[0]))
            revenue = 1e6 * (1 + 1e3 * chance.share("size", np.array([number]))[0]) * (1 + chance.share("now", row)[0])
            earned = revenue * (chance.share("earned", row)[0] - 0.3)
            shares = int(chance.number("shares", np.array([number]), 1_000_000, 900_000_000)[0])
            by = cik if chance.share("by", row)[0] < 0.5 else f"{self.name(number):60}"
            text = f"FIN{start.year}{quarter % 4 + 1}{start:%Y%m%d}{posted:%Y%m%d}{revenue:17.2f}{earned:17.2f}"
            text += f"{earned / shares:12.2f}{earned / shares / 1.1:12.2f}{earned / revenue:12.2f}"
            text += f"{revenue / 9:17.2f}{revenue * 3:17.2f}{revenue * 2:17.2f}{shares:13}{round(shares * 1.1):13}{by}"
            yield _moment(posted, 18, row), 2, text

    def _of_security(self, number: int) -> Iterator[tuple[datetime.datetime, int, str]]:
        chance, row = Chance(self.seed, "security"), np.array([number])
        company = int(self.company_of(row)[0])
        for version in range(1 + int(chance.number("changes", row, 0, 3)[0])):
            of = row * 64 + version
            at = self._posted("security", number, version)
            shares = int(chance.number("shares", of, 1_000_000, 900_000_000)[0])
            traded = FIRST_DAY - datetime.timedelta(int(chance.number("first", row, 100, 9_000)[0]))
            listed = traded - datetime.timedelta(3)
            by = f"{company + 1:010}" if chance.share("by", of)[0] < 0.5 else f"{self.name(company):60}"
            text = f"SEC{symbol(number):15}{chance.one('issue', row, _ISSUES)[0]:6}{'ACTV'}"
            text += f"{f'{self.name(company)} {number}':70}{chance.one('exchange', row, _EXCHANGES)[0]:6}{shares:13}"
            yield at, 1, f"{text}{traded:%Y%m%d}{listed:%Y%m%d}{chance.share('dividend', of)[0] * 9:12.2f}{by}"

    def _posted(self, what: str, number: int, version: int) -> datetime.datetime:
        """A first record is of the first day; later ones are of any later one, in the order of their versions."""
        if version == 0:
            return _moment(FIRST_DAY, 6 if what == "company" else 7, np.array([number]))
        chance, row = Chance(self.seed, what), np.array([number])
        place = (version - 1 + chance.share("posted", row * 64 + version)[0]) / 3
        return _moment(FIRST_DAY + datetime.timedelta(1 + int(place * (HISTORY + 365))), 9, np.array([number]))

    def prices(self, days: Longs) -> pa.Table:
        """DM_DATE, DM_S_SYMB, DM_CLOSE, DM_HIGH, DM_LOW and DM_VOL of all securities on these days, which are counted
        from the historical load's last one; on those that the market is closed, of none."""
        opened = np.asarray([day for day in days.tolist() if date_of(day).weekday() < 5], np.int64)
        securities = np.arange(self.sizes.securities, dtype=np.int64)
        day, security = np.repeat(opened, len(securities)), np.tile(securities, len(opened))
        close = self.price(security, day)
        chance, row = Chance(self.seed, "price"), security * 100_000 + day + HISTORY
        high = close * (1 + 0.05 * chance.share("high", row))
        low = close * (1 - 0.05 * chance.share("low", row))
        dates = np.asarray([np.datetime64(date_of(one)) for one in opened.tolist()], "datetime64[D]")
        return pa.table(
            {
                "DM_DATE": np.repeat(dates, len(securities)),
                "DM_S_SYMB": np.tile(self.symbols, len(opened)),
                "DM_CLOSE": np.round(close, 2),
                "DM_HIGH": np.round(high, 2),
                "DM_LOW": np.round(low, 2),
                "DM_VOL": chance.number("volume", row, 1_000, 1_000_000),
            }
        )

    def price(self, securities: Longs, days: Longs) -> Floats:
        """What one costs on a day: a slow wave of its own, and a little noise."""
        chance = Chance(self.seed, "price")
        base, phase = 5 + 150 * chance.share("base", securities), 6.3 * chance.share("phase", securities)
        wave = 1 + 0.4 * np.sin(phase + days / (60 + 200 * chance.share("length", securities)))
        noise: Floats = base * wave * (0.97 + 0.06 * chance.share("noise", securities * 100_000 + days + HISTORY))
        return noise


def _moment(day: datetime.date, hour: int, row: Longs) -> datetime.datetime:
    return datetime.datetime.combine(day, datetime.time(hour)) + datetime.timedelta(seconds=int(row[0]) % 3_600)
