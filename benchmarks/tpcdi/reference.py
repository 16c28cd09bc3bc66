"""The small tables that never change: dates, times, industries, and what the codes of trades and taxes mean."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

from benchmarks.tpcdi.sizes import FIRST_DAY, LAST_DAY

STATUS = {
    "ACTV": "Active",
    "CMPT": "Completed",
    "CNCL": "Canceled",
    "PNDG": "Pending",
    "SBMT": "Submitted",
    "INAC": "Inactive",
}
TRADE_TYPES = {
    "TMB": ("Market Buy", 0, 1),
    "TMS": ("Market Sell", 1, 1),
    "TSL": ("Stop Loss", 1, 0),
    "TLS": ("Limit Sell", 1, 0),
    "TLB": ("Limit Buy", 0, 0),
}
"""By id: name, whether it sells, whether it is at market."""
_GROUPS = {
    "BM": ("Basic Materials", ("Chemicals", "Containers", "Forestry", "Gold", "Iron", "Paper")),
    "CG": ("Capital Goods", ("Aerospace", "Construction", "Machinery", "Mobile Homes")),
    "CO": ("Conglomerates", ("Conglomerates",)),
    "CY": ("Consumer Cyclical", ("Apparel", "Appliances", "Cars", "Footwear", "Jewelry", "Toys")),
    "EN": ("Energy", ("Coal", "Oil Operations", "Oil Services")),
    "FN": ("Financial", ("Banks", "Insurance", "Investment", "Savings")),
    "HC": ("Healthcare", ("Biotechnology", "Drugs", "Equipment", "Facilities")),
    "SV": ("Services", ("Advertising", "Hotels", "Printing", "Restaurants", "Schools", "Security")),
    "TC": ("Technology", ("Communications", "Hardware", "Networks", "Semiconductors", "Software")),
    "TR": ("Transportation", ("Airlines", "Couriers", "Railroads", "Trucking", "Water")),
    "UT": ("Utilities", ("Electric", "Gas", "Water Supply")),
}
INDUSTRIES = {
    f"{code[0]}{number}": (name, code) for code, (_, names) in _GROUPS.items() for number, name in enumerate(names)
}
"""By id: name and sector."""
_BRACKETS = ((0, "0.10000"), (8_000, "0.15000"), (30_000, "0.25000"), (80_000, "0.28000"), (190_000, "0.33000"))
_COUNTRIES = ("US", "CA", "UK", "DE")
TAXES = {
    f"{country}{number}": (f"{country} tax from {start}", rate)
    for country in _COUNTRIES
    for number, (start, rate) in enumerate(_BRACKETS)
}
"""By id: name and rate."""


def write_reference(folder: Path) -> None:
    """Each table in a folder of its own; fields end at ``|``."""
    tables = {
        "date": _dates(),
        "time": _times(),
        "industry": ((id, *rest) for id, rest in INDUSTRIES.items()),
        "status_type": iter(STATUS.items()),
        "tax_rate": ((id, *rest) for id, rest in TAXES.items()),
        "trade_type": ((id, *rest) for id, rest in TRADE_TYPES.items()),
    }
    for name, rows in tables.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "0000.txt").write_text("".join("|".join(map(str, row)) + "\n" for row in rows))


def _dates() -> Iterator[tuple[object, ...]]:
    """Key, date, and the names and numbers of its year, quarter, month, week and day; three years past the load."""
    day = datetime.date(FIRST_DAY.year - 2, 1, 1)
    while day.year <= LAST_DAY.year + 3:
        year, week, weekday = day.isocalendar()
        quarter = (day.month + 2) // 3
        names = (f"{day:%B} {day.day}, {day.year}", day.year, day.year, f"{day.year}{quarter}")
        more = (f"{day.year} Q{quarter}", f"{day:%Y}{day.month}", f"{day:%Y %B}", f"{year}{week}", f"{year}-W{week}")
        holiday = (str((day.month, day.day) in {(1, 1), (7, 4), (12, 25)}).lower(),)
        yield (f"{day:%Y%m%d}", day, *names, *more, weekday, f"{day:%A}", *holiday)
        day += datetime.timedelta(1)


def _times() -> Iterator[tuple[object, ...]]:
    """Key, time, and its hour, minute and second with their names; whether the market is open, and the office."""
    for second in range(24 * 60 * 60):
        hour, minute, rest = second // 3600, second // 60 % 60, second % 60
        text = f"{hour:02}:{minute:02}:{rest:02}"
        is_open = (str(34_200 <= second < 57_600).lower(), str(28_800 <= second < 64_800).lower())
        yield (f"{hour:02}{minute:02}{rest:02}", text, hour, f"{hour:02}", minute, text[:5], rest, text, *is_open)
