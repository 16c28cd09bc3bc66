"""Every Markdown file of the repository: its relative links lead somewhere, its lines are not too long, and the parts of
the code that texts for contributors name are there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONGEST = 100
BASES = ("", "dbt_incremental_dd")
GENERATED = {"build", "data", "dbt_packages", "dist", "site", "state", "target"}

_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"\[(?:[^\[\]]|`[^`]*`)*\]\(([^)\s]+)\)")
_UNBREAKABLE = re.compile(r"\]\([^)\s]+\)\S*|`[^`]+`\S*")


def texts() -> Iterator[Path]:
    """The files, but for what builds and runs have left."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in GENERATED]
        yield from (Path(folder, name) for name in files if name.endswith(".md"))


def prose(text: str) -> list[tuple[int, str]]:
    """The lines outside of code blocks, with their numbers."""
    found, is_code = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            found.append((number, line))
    return found


def links(text: str) -> list[str]:
    """Targets of links and images within the repository."""
    joined = _CODE.sub("", "\n".join(line for _, line in prose(text)))
    return [target for target in _LINK.findall(joined) if not re.match(r"[a-z]+:", target)]


@cache
def anchors(path: Path) -> frozenset[str]:
    """What its headings are called in links."""
    found: dict[str, int] = {}
    for _, line in prose(path.read_text()):
        if heading := re.match(r"#{1,6} +(.*?) *$", line):
            shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
            name = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
            found[name] = found.get(name, 0) + 1
    return frozenset(name if not i else f"{name}-{i}" for name, count in found.items() for i in range(count))


def broken(path: Path) -> list[str]:
    """Links that lead to no file, or to no heading of one."""
    found = []
    for target in links(path.read_text()):
        name, _, anchor = target.partition("#")
        place = (path.parent / name).resolve() if name else path
        if not place.exists() or (anchor and (place.suffix != ".md" or anchor not in anchors(place))):
            found.append(target)
    return found


def too_long(text: str) -> list[int]:
    """Numbers of lines that could be broken earlier: not a table's, nor one that is a single link."""
    return [
        number
        for number, line in prose(text)
        if len(line) > LONGEST and not line.startswith("|") and len(_UNBREAKABLE.sub("x", line).split()) > 1
    ]


FILES = sorted(texts())


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    assert broken(path) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_lines_are_not_too_long(path: Path) -> None:
    assert too_long(path.read_text()) == []


@pytest.mark.parametrize("path", ["CONTRIBUTING.md", "docs/architecture.md", "docs/operations.md"])
def test_files_of_the_code_that_are_named_are_there(path: str) -> None:
    named = set(re.findall(r"`([\w/]+/[\w]+\.py)`", (ROOT / path).read_text()))
    assert sorted(name for name in named if not any((ROOT / base / name).exists() for base in BASES)) == []
    assert named or path != "CONTRIBUTING.md"


def test_names_that_contributors_look_for_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"`(_?[A-Z][A-Z_]{3,}|_\w+|[A-Z][a-z]+(?:[A-Z][a-z]+)+)`", text))
    beside = (ROOT / "tests" / "local" / "test_expressions.py", ROOT / "tests" / "turns.py")
    files = [*(ROOT / "dbt_incremental_dd").rglob("*.py"), *beside]
    code = "\n".join(path.read_text() for path in files)
    assert sorted(name for name in named if name not in code) == []
    assert len(named) > 10
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    functions = set(re.findall(r"`(test_\w+)`", text))
    assert sorted(name for name in functions if f"def {name}(" not in tests) == []
    assert functions


def test_what_is_wrong_is_found(tmp_path: Path) -> None:
    other = tmp_path / "other.md"
    other.write_text("# dbt's `x` and y\n\n## Twice\n\n## Twice\n")
    path = tmp_path / "page.md"
    path.write_text(
        "# Page\n[a](other.md#dbts-x-and-y) [b](other.md#twice-1) [c](#page) ![d\ne](gone.png) [f](other.md#gone)\n"
        "`[g](gone.md)`\n```\n[h](gone.md)\n```\n[i](https://example.com/x) [`j[0]`](gone.md)\n"
    )
    assert broken(path) == ["gone.png", "other.md#gone", "gone.md"]
    assert len(FILES) > 10 and any(links(file.read_text()) for file in FILES)


def test_a_line_that_could_be_broken_is_found() -> None:
    long = "word " * 21
    lines = [long, f"| {long} |", "```", long, "```", f"![{'x' * 100}](a.png)", f"- {long}"]
    assert too_long("\n".join(lines)) == [1, 7]
