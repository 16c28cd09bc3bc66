"""docs/adopting.md is what it says: its files are written and its commands run, from top to bottom."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from dbt_incremental_dd.cli import main
from tests.dbt.project import Project, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "adopting.md"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"(?:#|--) (\S+/?\S+\.\w+)\n(.*)", re.DOTALL)
SCHEMA = "adopted"
EXPECTED = [("ann", "4.00", "2024-05-09"), ("ann", "5.00", "2024-05-01"), ("bob", "1.25", "2023-01-31")]


@dataclass
class Command:
    """A line of the page that begins with ``$``, and lines that its output must have; ``...`` stands for anything."""

    words: list[str]
    fails: bool
    shown: list[str] = field(default_factory=list)


def blocks() -> Iterator[tuple[str, str]]:
    """Each block's language and text."""
    text = PAGE.read_text().replace("analytics", SCHEMA)
    return ((found[1], found[2]) for found in _BLOCK.finditer(text))


def commands(text: str) -> list[Command]:
    """Those of one block."""
    found: list[Command] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(Command(shlex.split(line[2:], comments=True), line.endswith("# fails")))
        else:
            found[-1].shown.append(line)
    return found


def run(project: Project, command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs one, and looks for what the page shows of its output."""
    program, *arguments = command.words
    if program == "rm":
        (project.folder / arguments[0]).unlink()
        return
    if program == "dbt":
        told = project.dbt(*arguments, fails=command.fails)
        lines = [*project.told, *(map(str, told.values()) if command.fails else ())]
    else:
        folder = str(project.folder)
        assert main([*arguments, "--project-dir", folder, "--profiles-dir", folder]) == 0
        lines = capsys.readouterr().out.splitlines()
    for shown in command.shown:
        pattern = re.compile(".*".join(re.escape(part.strip()) for part in shown.split("...")), re.DOTALL)
        assert any(pattern.search(line) for line in lines), (shown, lines)


def test_every_step_of_the_page(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = Project(tmp_path)
    project.schema = SCHEMA
    steps = 0
    for language, text in blocks():
        named = _NAMED.fullmatch(text)
        if named is not None:
            project.write(named[1], named[2])
        elif not language:
            for command in commands(text):
                run(project, command, capsys)
                steps += 1
                if command.words[:2] == ["dbt-dd", "verify"]:
                    found = [tuple(map(str, row)) for row in rows(spark, project, "daily")]
                    assert found[:-1] == EXPECTED and len(found) == 4
    assert steps > 15
    left = {row["tableName"] for row in spark.sql(f"SHOW TABLES IN {SCHEMA}").collect() if not row["isTemporary"]}
    assert left == {"orders", "daily", "best"}


def test_every_profile_of_the_page_is_one() -> None:
    from dbt.adapters.differential import DifferentialCredentials

    profiles = [yaml.safe_load(text) for language, text in blocks() if language == "yaml" and "outputs:" in text]
    targets = [target for one in profiles for target in one["shop"]["outputs"].values()]
    ours = [target for target in targets if target.pop("type") == "differential"]
    assert len(ours) == 3
    for target in ours:
        target.pop("threads", None)
        assert DifferentialCredentials(**DifferentialCredentials.__pre_deserialize__(target)).type == "differential"
