"""Thresholds as a profile gives them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.thresholds import Thresholds


def test_what_is_not_given_is_as_it_is_by_default() -> None:
    assert Thresholds.of({}) == Thresholds()
    given = Thresholds.of({"local_rows": 0, "kept_rows": 7})
    assert (given.local_rows, given.kept_rows, given.task_rows) == (0, 7, Thresholds().task_rows)


@pytest.mark.parametrize(
    ("name", "remedy"), [("local_row", "Did you mean local_rows?"), ("x", "There are local_rows, task_rows, ")]
)
def test_an_unknown_one_is_refused_by_its_name(name: str, remedy: str) -> None:
    with pytest.raises(ConfigError, match=rf"unknown setting thresholds\.{name}") as caught:
        Thresholds.of({"kept_rows": 7, name: 0})
    assert caught.value.remedy.startswith(remedy)


@pytest.mark.parametrize("value", [-1, 0.5, "7", None, True])
def test_a_value_that_is_no_count_is_refused(value: object) -> None:
    with pytest.raises(ConfigError, match=r"thresholds\.kept_rows is "):
        Thresholds.of({"kept_rows": value})


def test_all_are_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "clusters.md").read_text()
    assert all(f"`{field.name}`" in text for field in fields(Thresholds))


def test_the_engine_spark_computes_nothing_on_the_driver() -> None:
    found = Thresholds.of({"kept_rows": 7}, "spark")
    assert (found.local_rows, found.taken_rows, found.joined_rows, found.kept_rows) == (0, 0, 0, 7)
    with pytest.raises(ConfigError, match="engine is 'duck'"):
        Thresholds.of({}, "duck")
