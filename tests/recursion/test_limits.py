"""Spark's limits on its recursions, lifted while models are verified."""

from __future__ import annotations

from dbt_incremental_dd.runtime.recursion_limits import unlimited

LEVELS, ROWS = "spark.sql.cteRecursionLevelLimit", "spark.sql.cteRecursionRowLimit"


class _Conf(dict):
    def set(self, name: str, value: str) -> None:
        self[name] = value

    def unset(self, name: str) -> None:
        self.pop(name, None)


class _Session:
    def __init__(self, settings: dict[str, str]) -> None:
        self.conf = _Conf(settings)


def test_the_last_one_restores_what_the_user_had_set() -> None:
    spark = _Session({LEVELS: "7"})
    first, second = unlimited(spark), unlimited(spark)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert int(spark.conf[LEVELS]) > 100
    second.__exit__(None, None, None)
    assert spark.conf == {LEVELS: "7"}


def test_each_session_has_its_own() -> None:
    one, other = _Session({}), _Session({ROWS: "5"})
    with unlimited(one):
        with unlimited(other):
            assert other.conf[ROWS] == "-1"
        assert one.conf[ROWS] == "-1"
        assert other.conf == {ROWS: "5"}
    assert one.conf == {}
