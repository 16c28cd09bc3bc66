"""TPC-DI's generator: the same files for the same seed, and batches that lead from one day's tables to the next."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks.tpcdi.chance import Chance
from benchmarks.tpcdi.generator import Generator
from benchmarks.tpcdi.lifetime import Lifetime, Shares

SCALE, DAYS = 0.05, 4
SHARES = Shares(inserts=0.02, updates=0.03, deletes=0.03)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Generator:
    found = Generator(tmp_path_factory.mktemp("tpcdi"), SCALE, SHARES)
    found.historical()
    for day in range(1, DAYS + 1):
        found.batch(day)
    return found


def lines(made: Generator, table: str, day: int) -> list[str]:
    (path,) = (made.folder / table).glob(f"{day:04}.*")
    return path.read_text().splitlines()


def now(columns: dict[str, np.ndarray]) -> Counter[str]:  # type: ignore[type-arg]
    return Counter("|".join(map(str, row)) for row in zip(*columns.values(), strict=True))


def test_the_same_seed_gives_the_same_files(made: Generator, tmp_path: Path) -> None:
    again = Generator(tmp_path, SCALE, SHARES)
    again.batch(3)
    again.historical()
    for table, day in (("trade", 0), ("trade", 3), ("customer_mgmt", 0), ("finwire", 3)):
        assert lines(again, table, day) == lines(made, table, day)
    assert lines(Generator(tmp_path, SCALE, SHARES, seed=2), "trade", 3) == lines(made, "trade", 3)


def test_batches_of_a_keyed_table_lead_to_its_rows(made: Generator) -> None:
    first = [line.split("|", 2)[2] for line in lines(made, "trade", 0)]
    rows = {row.split("|", 1)[0]: row for row in first}
    for day in range(1, DAYS + 1):
        kinds = Counter(line[0] for line in lines(made, "trade", day))
        assert set(kinds) == {"I", "U", "D"}
        for line in lines(made, "trade", day):
            flag, _, row = line.split("|", 2)
            key = row.split("|", 1)[0]
            assert (key in rows) == (flag != "I")
            if flag == "D":
                del rows[key]
            else:
                rows[key] = row
        trades = made.trades
        assert Counter(rows.values()) == now(trades.trade(trades.trades.alive(day), day))


@pytest.mark.parametrize("table", ["cash_transaction", "holding_history"])
def test_batches_of_a_table_without_a_key_lead_to_its_rows(made: Generator, table: str) -> None:
    trades = made.trades
    of = {"cash_transaction": trades.cash, "holding_history": trades.holdings}[table]
    rows = Counter(line.split("|", 2)[2] for line in lines(made, table, 0))
    for day in range(1, DAYS + 1):
        for line in lines(made, table, day):
            flag, _, row = line.split("|", 2)
            rows[row] += 1 if flag == "I" else -1
        assert min(rows.values()) >= 0
        assert +rows == now(of(trades.trades.alive(day), day))


def test_finwire_s_records_have_fixed_widths(made: Generator) -> None:
    company = sum((15, 3, 60, 10, 4, 2, 4, 8, 80, 80, 12, 25, 20, 24, 46, 150))
    security = sum((15, 3, 15, 6, 4, 70, 6, 13, 8, 8, 12))
    result = sum((15, 3, 4, 1, 8, 8, 17, 17, 12, 12, 12, 17, 17, 17, 13, 13))
    # The last column is a company's number, of 10 characters, or its name, of 60.
    widths = {"CMP": {company}, "SEC": {security + 10, security + 60}, "FIN": {result + 10, result + 60}}
    found: dict[str, set[int]] = {}
    last = ""
    for line in lines(made, "finwire", 0):
        assert re.match(r"\d{8}-\d{6}(CMP|SEC|FIN)", line) and line[:15] >= last
        found.setdefault(line[15:18], set()).add(len(line))
        last = line[:15]
    assert found == widths


def test_customer_s_actions_are_xml_in_their_order(made: Generator) -> None:
    (path,) = (made.folder / "customer_mgmt").glob("0000.xml")
    actions = ElementTree.parse(path).getroot()
    kinds = [action.attrib["ActionType"] for action in actions]
    assert {"NEW", "ADDACCT", "UPDCUST", "UPDACCT", "INACT", "CLOSEACCT"} == set(kinds)
    times = [action.attrib["ActionTS"] for action in actions]
    assert times == sorted(times)
    known = set()
    for action in actions:
        (customer,) = action
        if action.attrib["ActionType"] == "NEW":
            known.add(customer.attrib["C_ID"])
        assert customer.attrib["C_ID"] in known
    assert len(known) == made.sizes.customers


def test_some_records_come_late(made: Generator) -> None:
    trades = made.trades
    days = trades.at(trades.trades.inserted(2)) // 86_400
    assert days.min() < 2 and days.max() == 2


def test_shares_of_rows_come_change_and_go() -> None:
    life = Lifetime(Chance(1, "any"), 10_000, Shares(inserts=0.01, updates=0.02, deletes=0.03))
    for day in (1, 5):
        assert len(life.inserted(day)) == 100
        assert 120 < len(life.updated(day)) < 250
        assert 200 < len(life.deleted(day)) < 400
        assert not set(life.updated(day)) & set(life.deleted(day))
    assert len(Lifetime(Chance(1, "any"), 1_000, Shares(0.0, 0.0, 0.0)).alive(9)) == 1_000


def test_a_file_may_come_again(made: Generator) -> None:
    made.redelivered("trade", 1, 2)
    names = sorted(path.name for path in (made.folder / "trade").iterdir())
    assert "0002-again-0001.txt" in names
    (made.folder / "trade" / "0002-again-0001.txt").unlink()


@pytest.mark.parametrize("shares", [Shares(0, 0, 0.02), Shares(0, 0.02, 0), Shares(0.02, 0, 0)])
def test_days_of_one_kind_of_change(tmp_path: Path, shares: Shares) -> None:
    found = Generator(tmp_path, SCALE, shares)
    found.historical()
    found.batch(1)
    wanted = {flag for flag, share in zip("IUD", vars(shares).values(), strict=True) if share}
    assert {line[0] for line in lines(found, "trade", 1)} == wanted
