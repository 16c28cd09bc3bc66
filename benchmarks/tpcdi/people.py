"""Customers and their accounts, prospects, and the staff."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

import numpy as np
import pyarrow as pa

from benchmarks.tpcdi.chance import Chance, Longs, Texts
from benchmarks.tpcdi.lifetime import Lifetime
from benchmarks.tpcdi.reference import TAXES
from benchmarks.tpcdi.sizes import FIRST_DAY, HISTORY, Sizes

_FIRST = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gia", "Hugo", "Ida", "Jon", "Kim", "Lea", "Max", "Nia", "Otto")
_LAST = ("Abel", "Brook", "Cole", "Dorn", "Ellis", "Frost", "Grant", "Hale", "Irwin", "Jonas", "Keller", "Lund", "Moss")
_STREETS = ("Oak", "Elm", "Lake", "Hill", "River", "Park", "Mill", "Church")
_CITIES = ("Boston", "Denver", "Toronto", "Leeds", "Bremen", "Tucson", "Omaha", "Tampa")
_STATES = ("MA", "CO", "ON", "ENG", "HB", "AZ", "NE", "FL")
_MARITAL = ("S", "M", "D", "W", "U")
_JOBS = (314, 314, 314, 364, 534, 125)
"""Job codes; 314 is a broker's."""


@dataclass(frozen=True)
class People:
    """``customers`` and ``accounts``: which there are on which day."""

    seed: int
    sizes: Sizes
    customers: Lifetime
    accounts: Lifetime

    def customer(self, rows: Longs, day: int) -> dict[str, Texts]:
        """The customers' columns after a day's batch, in the order of Customer.txt."""
        chance, version = Chance(self.seed, "customer"), self.customers.version(rows, day)
        now = rows * 512 + version
        born = np.datetime64("1930-01-01") + chance.number("born", rows, 0, 25_000)
        tier = (1 + chance.number("tier", now, 0, 3)).astype(str)
        phone = chance.number("phone", now, 1_000_000, 9_999_999).astype(str)
        first, last = chance.one("first", rows, _FIRST), chance.one("last", rows, _LAST)
        number, place = chance.number("house", now, 1, 900).astype(str), chance.number("city", now, 0, len(_CITIES))
        street = np.char.add(np.char.add(number, " "), np.char.add(chance.one("street", now, _STREETS), " Street"))
        empty, taxes = np.full(len(rows), ""), [*TAXES]
        mail = np.char.add(np.char.lower(np.char.add(first, last)), np.char.add((rows + 1).astype(str), "@mail.test"))
        return {
            "C_ID": (rows + 1).astype(str),
            "C_TAX_ID": np.char.mod("9%08d", rows + 1),
            "C_ST_ID": np.where(chance.share("status", now) < 0.03, "INAC", "ACTV"),
            "C_L_NAME": last,
            "C_F_NAME": first,
            "C_M_NAME": chance.one("middle", rows, ("", "B", "L", "R")),
            "C_GNDR": chance.one("gender", rows, ("F", "M", "f", "m", "U")),
            "C_TIER": tier,
            "C_DOB": born.astype(str),
            "C_ADLINE1": street,
            "C_ADLINE2": empty,
            "C_ZIPCODE": np.char.mod("%05d", chance.number("zip", now, 0, 99_999)),
            "C_CITY": np.asarray(_CITIES)[place],
            "C_STATE_PROV": np.asarray(_STATES)[place],
            "C_CTRY": chance.one("country", now, ("United States of America", "Canada")),
            "C_CTRY_1": np.full(len(rows), "1"),
            "C_AREA_1": chance.number("area", now, 200, 999).astype(str),
            "C_LOCAL_1": phone,
            "C_EXT_1": empty,
            "C_EMAIL_1": mail,
            "C_LCL_TX_ID": chance.one("local", now, taxes),
            "C_NAT_TX_ID": chance.one("national", now, taxes),
        }

    def account(self, rows: Longs, day: int) -> dict[str, Texts]:
        """The accounts' columns after a day's batch, in the order of Account.txt."""
        chance, now = Chance(self.seed, "account"), rows * 512 + self.accounts.version(rows, day)
        return {
            "CA_ID": (rows + 1).astype(str),
            "CA_B_ID": (1 + chance.number("broker", now, 0, self.sizes.employees)).astype(str),
            "CA_C_ID": (1 + self.owner(rows)).astype(str),
            "CA_NAME": np.char.add("Account ", (now + 1).astype(str)),
            "CA_TAX_ST": chance.number("taxed", now, 0, 3).astype(str),
            "CA_ST_ID": np.where(chance.share("status", now) < 0.03, "INAC", "ACTV"),
        }

    def owner(self, accounts: Longs) -> Longs:
        """Whose they are: each of the first ones is another customer's."""
        first = self.sizes.customers
        other = Chance(self.seed, "account").number("owner", accounts, 0, first)
        return np.where(accounts < first, accounts, other)

    def management(self) -> Iterator[str]:
        """CustomerMgmt.xml: what was done to customers and accounts up to the historical load, in order."""
        customers, accounts = self.customers.inserted(0), self.accounts.inserted(0)
        rows = self.customer(customers, 0)
        held = self.account(accounts, 0)
        actions = [*self._of_customers(rows), *self._of_accounts(held)]
        yield '<?xml version="1.0" encoding="UTF-8"?>\n<TPCDI:Actions xmlns:TPCDI="http://www.tpc.org/tpc-di">\n'
        for at, _, text in sorted(actions):
            yield text.replace("@TS", f"{at:%Y-%m-%dT%H:%M:%S}")
        yield "</TPCDI:Actions>\n"

    def _of_customers(self, rows: dict[str, Texts]) -> Iterator[tuple[datetime.datetime, int, str]]:
        chance = Chance(self.seed, "action")
        for number in range(self.sizes.customers):
            row = np.array([number])
            one = {name: str(values[number]) for name, values in rows.items()}
            joined = float(chance.share("joined", row)[0])
            broker = 1 + int(chance.number("broker", row, 0, self.sizes.employees)[0])
            account = f'<Account CA_ID="{number + 1}" CA_TAX_ST="1"><CA_B_ID>{broker}</CA_B_ID>'
            account += f"<CA_NAME>First account {number + 1}</CA_NAME></Account>"
            yield _at(joined), number, _action("NEW", _customer(one, account))
            for change in range(int(chance.number("changes", row, 0, 3)[0])):
                later = joined + (1 - joined) * (change + 1) / 4
                tier = 1 + (int(one["C_TIER"]) + change) % 3
                partial = f"<Customer C_ID={quoteattr(one['C_ID'])} C_TIER={quoteattr(str(tier))}><ContactInfo>"
                partial += f"<C_PRIM_EMAIL>new{change}.{one['C_EMAIL_1']}</C_PRIM_EMAIL></ContactInfo></Customer>"
                yield _at(later), number, _action("UPDCUST", partial)
            if chance.share("left", row)[0] < 0.05:
                gone = f"<Customer C_ID={quoteattr(one['C_ID'])}/>"
                yield _at(joined + (1 - joined) * 0.9), number, _action("INACT", gone)

    def _of_accounts(self, rows: dict[str, Texts]) -> Iterator[tuple[datetime.datetime, int, str]]:
        chance = Chance(self.seed, "action")
        for number in range(self.sizes.accounts):
            row = np.array([number])
            one = {name: str(values[number]) for name, values in rows.items()}
            owner = np.array([int(one["CA_C_ID"]) - 1])
            joined = float(chance.share("joined", owner)[0])
            opened = joined + (1 - joined) * 0.1
            account = f"<Account CA_ID={quoteattr(one['CA_ID'])} CA_TAX_ST={quoteattr(one['CA_TAX_ST'])}>"
            account += f"<CA_B_ID>{one['CA_B_ID']}</CA_B_ID><CA_NAME>{one['CA_NAME']}</CA_NAME></Account>"
            if number >= self.sizes.customers:
                yield _at(opened), number, _action("ADDACCT", _owned(one, account))
            if chance.share("renamed", row)[0] < 0.2:
                renamed = f"<Account CA_ID={quoteattr(one['CA_ID'])}><CA_NAME>{one['CA_NAME']}, renamed</CA_NAME>"
                yield _at(opened + (1 - opened) * 0.5), number, _action("UPDACCT", _owned(one, f"{renamed}</Account>"))
            if chance.share("closed", row)[0] < 0.05:
                closed = _owned(one, f"<Account CA_ID={quoteattr(one['CA_ID'])}/>")
                yield _at(opened + (1 - opened) * 0.8), number, _action("CLOSEACCT", closed)

    def prospects(self, day: int) -> pa.Table:
        """Prospect.csv, which each batch has as a whole: a fifth are customers."""
        rows = np.arange(self.sizes.prospects, dtype=np.int64)
        chance = Chance(self.seed, "prospect")
        changed = np.zeros(len(rows), np.int64)
        for one in range(1, day + 1):
            changed += chance.share(f"changed {one}", rows) < 0.005
        now = rows * 512 + changed
        known = self.customer(rows % self.sizes.customers, 0)
        is_customer = chance.share("customer", rows) < 0.2

        def either(name: str, other: Texts) -> Texts:
            return np.where(is_customer, known[name], other)

        table = {
            "AgencyID": np.char.add("AG", (rows + 1).astype(str)),
            "LastName": either("C_L_NAME", chance.one("last", rows, _LAST)),
            "FirstName": either("C_F_NAME", chance.one("first", rows, _FIRST)),
            "MiddleInitial": chance.one("middle", rows, ("", "B", "L", "R")),
            "Gender": chance.one("gender", rows, ("F", "M", "")),
            "AddressLine1": either("C_ADLINE1", np.char.add(chance.number("house", rows, 1, 900).astype(str), " Row")),
            "AddressLine2": np.full(len(rows), ""),
            "PostalCode": either("C_ZIPCODE", chance.number("zip", rows, 10_000, 99_999).astype(str)),
            "City": chance.one("city", rows, _CITIES),
            "State": chance.one("state", rows, _STATES),
            "Country": chance.one("country", rows, ("United States of America", "Canada")),
            "Phone": chance.number("phone", rows, 1_000_000, 9_999_999),
            "Income": chance.number("income", now, 10_000, 400_000),
            "NumberCars": chance.number("cars", now, 0, 5),
            "NumberChildren": chance.number("children", now, 0, 6),
            "MaritalStatus": chance.one("marital", now, _MARITAL),
            "Age": chance.number("age", rows, 18, 95),
            "CreditRating": chance.number("credit", now, 300, 850),
            "OwnOrRentFlag": chance.one("owns", rows, ("O", "R", "U")),
            "Employer": np.char.add("Employer ", chance.number("employer", rows, 1, 500).astype(str)),
            "NumberCreditCards": chance.number("cards", now, 0, 8),
            "NetWorth": chance.number("worth", now, -50_000, 4_000_000),
        }
        return pa.table(table)

    def staff(self) -> pa.Table:
        """HR.csv: employees, their managers and jobs."""
        rows, chance = np.arange(self.sizes.employees, dtype=np.int64), Chance(self.seed, "employee")
        return pa.table(
            {
                "EmployeeID": rows + 1,
                "ManagerID": 1 + rows // 10,
                "EmployeeFirstName": chance.one("first", rows, _FIRST),
                "EmployeeLastName": chance.one("last", rows, _LAST),
                "EmployeeMI": chance.one("middle", rows, ("", "B", "L", "R")),
                "EmployeeJobCode": np.asarray(_JOBS)[chance.number("job", rows, 0, len(_JOBS))],
                "EmployeeBranch": chance.one("branch", rows, _CITIES),
                "EmployeeOffice": np.char.add("OFFICE", chance.number("office", rows, 1, 9_999).astype(str)),
                "EmployeePhone": chance.number("phone", rows, 1_000_000, 9_999_999),
            }
        )


def _at(place: float) -> datetime.datetime:
    """A moment of the history, from 0 to 1."""
    return datetime.datetime.combine(FIRST_DAY, datetime.time()) + datetime.timedelta(
        seconds=int(place * (HISTORY - 1) * 86_400)
    )


def _action(kind: str, inner: str) -> str:
    return f'<TPCDI:Action ActionType="{kind}" ActionTS="@TS">{inner}</TPCDI:Action>\n'


def _owned(account: dict[str, str], inner: str) -> str:
    return f"<Customer C_ID={quoteattr(account['CA_C_ID'])}>{inner}</Customer>"


def _customer(one: dict[str, str], account: str) -> str:
    given = (("C_ID", "C_ID"), ("C_TAX_ID", "C_TAX_ID"), ("C_GNDR", "C_GNDR"), ("C_TIER", "C_TIER"), ("C_DOB", "C_DOB"))
    attributes = " ".join(f"{name}={quoteattr(one[column])}" for name, column in given)
    parts = {
        "Name": ("C_L_NAME", "C_F_NAME", "C_M_NAME"),
        "Address": ("C_ADLINE1", "C_ADLINE2", "C_ZIPCODE", "C_CITY", "C_STATE_PROV", "C_CTRY"),
        "TaxInfo": ("C_LCL_TX_ID", "C_NAT_TX_ID"),
    }
    inner = {name: "".join(f"<{tag}>{one[tag]}</{tag}>" for tag in tags) for name, tags in parts.items()}
    phone = "".join(f"<{tag}>{one[f'{tag}_1']}</{tag}>" for tag in ("C_CTRY", "C_AREA", "C_LOCAL", "C_EXT"))
    phone = phone.replace("C_CTRY", "C_CTRY_CODE").replace("C_AREA", "C_AREA_CODE")
    contact = f"<C_PRIM_EMAIL>{one['C_EMAIL_1']}</C_PRIM_EMAIL><C_PHONE_1>{phone}</C_PHONE_1>"
    text = f"<Name>{inner['Name']}</Name><Address>{inner['Address']}</Address><ContactInfo>{contact}</ContactInfo>"
    return f"<Customer {attributes}>{text}<TaxInfo>{inner['TaxInfo']}</TaxInfo>{account}</Customer>"
