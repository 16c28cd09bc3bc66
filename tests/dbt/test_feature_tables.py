"""The tables of dbt's features in docs/models.md: each row is run by a test, and says what the test shows."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.dbt.test_standard_configs import CONSTRAINTS, REFUSED, UNENFORCED, WARNED, WORKS

TESTS = Path(__file__).parents[1]
DOCS = TESTS.parent / "docs" / "models.md"

CONFIGS = "dbt/test_standard_configs.py"
PROJECT = "dbt/test_project.py"
FEATURES = "dbt/test_features.py"
SOURCES = "dbt/test_source_relations.py"

_WORKS = f"{CONFIGS}::test_what_works"
_REFUSED = f"{CONFIGS}::test_what_is_refused"
_WARNED = f"{CONFIGS}::test_what_is_warned_of_once"
_CONSTRAINTS = f"{CONFIGS}::test_constraints_of_contracts"
_CLONES = f"{CONFIGS}::test_clone_and_snapshot"
_BUILD = f"{PROJECT}::test_build_runs_tests_unit_tests_and_models"
_READING = f"{PROJECT}::test_commands_that_build_nothing"
_EMPTY = f"{PROJECT}::test_empty_and_sample_leave_state_alone"

BY_CONFIGS = {
    **{key: _WORKS for cell in WORKS for key in cell.split(", ")},
    **{key: _REFUSED for key in REFUSED if ":" not in key},
    **dict.fromkeys(WARNED, _WARNED),
    "contract": f"{_WORKS} engine/test_constraints.py::test_columns_of_a_contract",
    "persist_docs": f"{CONFIGS}::test_comments_follow_their_model_and_cost_nothing_where_nothing_changed",
    "on_schema_change": f"{_WORKS} {FEATURES}::test_on_schema_change",
    "grants": f"{_REFUSED} {FEATURES}::test_grants_are_applied_where_spark_knows_them",
    "models in Python": _REFUSED,
}
BY_COMMANDS = {
    "run": _BUILD,
    "build": _BUILD,
    "test": _READING,
    "seed": f"{PROJECT}::test_seed_changes_reach_models dbt/test_packages.py::test_seeds_are_exact",
    "retry": f"{FEATURES}::test_retry_goes_on_where_it_failed",
    "compile": _READING,
    "list": _READING,
    "docs": f"{PROJECT}::test_docs_hooks_contract_and_full_refresh {SOURCES}::test_the_catalog_knows_it",
    "unit tests": f"{_BUILD} {_READING}",
    "--select": f"{PROJECT}::test_selection_holds_back_consistently dbt/test_versions.py::test_one_model_can_always_be_run",
    "--defer": f"{FEATURES}::test_defer_reads_what_another_target_built",
    "--threads": f"{FEATURES}::test_four_threads_take_a_source_in_once",
    "--full-refresh": f"{PROJECT}::test_docs_hooks_contract_and_full_refresh",
    "partial parsing": f"{FEATURES}::test_partial_parsing_sees_changed_models",
    "model versions": f"{FEATURES}::test_versions_are_models_of_their_own",
    "show": f"{SOURCES}::test_before_the_first_intake {SOURCES}::test_after_an_intake",
    "source freshness": f"{SOURCES}::test_freshness_is_the_frontiers",
    "tests and unit tests on sources": f"{SOURCES}::test_a_fresh_build {SOURCES}::test_after_an_intake",
    "--empty": _EMPTY,
    "--sample": _EMPTY,
    "clone": _CLONES,
    "snapshot": f"{_CLONES} dbt/test_history.py::test_snapshots_are_kept_by_what_has_changed",
}
BY_CONSTRAINTS = {
    **{key: _CONSTRAINTS for key in CONSTRAINTS if " of " not in key},
    **{key: _REFUSED for key in UNENFORCED if ":" not in key},
}
TABLES = {"config": BY_CONFIGS, "command": BY_COMMANDS, "constraint": BY_CONSTRAINTS}


def table(head: str) -> dict[str, str]:
    """What the docs say of each key of a table: its second column. A row has the keys that its first one names."""
    (text,) = re.findall(rf"(?m)^\| {head} \| \|.*\n\| ---.*\n((?:\|.*\n)+)", DOCS.read_text())
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in text.splitlines()]
    return {key.strip("`"): row[1] for row in rows for key in row[0].split(", ")}


def functions_of(file: str) -> dict[str, str]:
    """The text of each test function."""
    text = (TESTS / file).read_text()
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return {one.name: ast.get_source_segment(text, one) or "" for one in functions if one.name.startswith("test_")}


@pytest.mark.parametrize("head", TABLES)
def test_each_row_is_run_by_a_test(head: str) -> None:
    mapped = TABLES[head]
    assert set(table(head)) == set(mapped)
    wanted = {tuple(test.split("::")) for tests in mapped.values() for test in tests.split()}
    assert not [f"{file}::{name}" for file, name in wanted if name not in functions_of(file)]


@pytest.mark.parametrize("head", TABLES)
def test_no_row_is_ignored(head: str) -> None:
    words = {word for state in table(head).values() for word in state.split(", or ")}
    assert words <= {"works", "refused", "warned of", "enforced"}


def test_rows_say_what_the_tests_show() -> None:
    shown = table("config") | table("constraint")
    for state, configs in {"works": WORKS, "refused": REFUSED | UNENFORCED, "warned of": WARNED}.items():
        keys = [key for cell in configs if ":" not in cell for key in cell.split(", ")]
        assert not [key for key in keys if state not in shown[key]]
    assert not [key for key in CONSTRAINTS if " of " not in key and shown[key] != "enforced"]


def test_commands_are_in_their_tests() -> None:
    """As a word of dbt's, or as the file that the feature is written in."""
    elsewhere = {"unit tests": "names", "model versions": "versions", "tests and unit tests on sources": "build"}
    elsewhere |= {"partial parsing": "--partial-parse", "show": "shown", "source freshness": '"freshness"'}
    for key, tests in BY_COMMANDS.items():
        text = "".join(functions_of(test.split("::")[0])[test.split("::")[1]] for test in tests.split())
        assert elsewhere.get(key, key) in text, key
