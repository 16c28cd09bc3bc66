"""Each pass by itself: ``passes/<pass>.txt`` has queries, and the plan before the pass and after it.

A block is a title, the query, an empty line, the plan that the passes before it leave, a line of dashes, and the plan
that it makes. Where it leaves the plan as it is, the title ends with "stays". A subplan that several read has a number.
``DD_UPDATE_FIXTURES=1`` writes the plans anew. No Spark is needed: all columns are integers.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import INTEGER
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.lower import lower
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.logical.explain import describe
from dbt_incremental_dd.logical.graph import each_once
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Fallback
from dbt_incremental_dd.logical.passes import PASSES

FOLDER = Path(__file__).with_name("passes")
INPUTS = {name: Input(name, Schema(tuple(Column(c, INTEGER) for c in "xyzv"))) for name in "abcds"}
_BETWEEN = "-" * 20


@dataclass
class Block:
    """``before`` and ``after``: plans as text."""

    title: str
    sql: str
    before: str = ""
    after: str = ""

    def text(self) -> str:
        """As it stands in the file."""
        return f"# {self.title}\n{self.sql}\n\n{self.before}\n{_BETWEEN}\n{self.after}\n"


def read(path: Path) -> list[Block]:
    """The blocks of a file."""
    found = []
    for block in re.split(r"^# ", path.read_text(), flags=re.MULTILINE)[1:]:
        title, _, rest = block.partition("\n")
        sql, _, plans = rest.partition("\n\n")
        before, _, after = plans.partition(f"\n{_BETWEEN}\n")
        found.append(Block(title, sql.strip(), before.strip("\n"), after.strip("\n")))
    return found


def lowered(sql: str) -> Node:
    """The plan of a query before any pass."""
    query = parsed(sql)
    count = len(query.tree.selects)
    plan = lower(query, INPUTS, Schema(tuple(Column(f"o{i}", INTEGER) for i in range(count))), _analyze).plan
    assert not any(isinstance(node, Fallback) for node in each_once(plan)), text(plan)
    return plan


def _analyze(sql: str, schemas: tuple[Schema, ...]) -> Schema:
    raise UnsupportedSQL("no types without Spark")


def text(plan: Node) -> str:
    """The plan as a tree."""
    reads = Counter(id(child) for node in each_once(plan) for child in node.inputs)
    numbers: dict[int, int] = {}

    def lines(node: Node, indent: str) -> Iterator[str]:
        if id(node) in numbers:
            yield f"{indent}({numbers[id(node)]})"
            return
        mark = ""
        if reads[id(node)] > 1:
            numbers[id(node)] = len(numbers) + 1
            mark = f"({numbers[id(node)]}) "
        yield f"{indent}{mark}{describe(node)}"
        for child in node.inputs:
            yield from lines(child, f"{indent}  ")

    return "\n".join(lines(plan, ""))


def test_each_pass_has_a_file() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == {rewrite.__name__ for rewrite in PASSES}


@pytest.mark.parametrize("rewrite", PASSES, ids=lambda rewrite: rewrite.__name__)
def test_plans_are_as_written(rewrite: Callable[[Node], Node]) -> None:
    path = FOLDER / f"{rewrite.__name__}.txt"
    made = []
    for block in read(path):
        plan = lowered(block.sql)
        for earlier in PASSES[: PASSES.index(rewrite)]:
            plan = earlier(plan)
        changed = rewrite(plan)
        assert changed.columns == plan.columns
        made.append(Block(block.title, block.sql, text(plan), text(changed)))
        assert (made[-1].before == made[-1].after) == block.title.endswith(" stays"), made[-1].text()
    if os.environ.get("DD_UPDATE_FIXTURES"):
        path.write_text("\n".join(block.text() for block in made))
    assert [block.text() for block in read(path)] == [block.text() for block in made]
