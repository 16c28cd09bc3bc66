"""Seeds."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.simple_seed import seeds as suite
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseBasicSeedTests,
    BaseSeedConfigFullRefreshOff,
    BaseSeedConfigFullRefreshOn,
    BaseSeedCustomSchema,
    BaseSeedParsing,
    BaseSeedSpecificFormats,
    BaseSeedWithEmptyDelimiter,
    BaseSeedWithUniqueDelimiter,
    BaseSimpleSeedEnabledViaConfig,
    BaseTestEmptySeed,
)

EXPECTED = (
    suite.seeds__expected_sql.replace("TIMESTAMP WITHOUT TIME ZONE", "TIMESTAMP")
    .replace("TEXT", "STRING")
    .replace('"', "`")
)


class Expected:
    """The suite's table, in Spark's SQL."""

    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project: Any) -> None:
        for statement in EXPECTED.split(";"):
            if statement.strip():
                project.run_sql(statement)


class TestSeedParsing(Expected, BaseSeedParsing):
    pass


class TestSeedWithUniqueDelimiter(Expected, BaseSeedWithUniqueDelimiter):
    pass


class TestSeedWithEmptyDelimiter(Expected, BaseSeedWithEmptyDelimiter):
    pass


class TestBasicSeeds(Expected, BaseBasicSeedTests):
    pass


class TestSeedConfigFullRefreshOn(Expected, BaseSeedConfigFullRefreshOn):
    pass


class TestSeedConfigFullRefreshOff(Expected, BaseSeedConfigFullRefreshOff):
    pass


class TestSeedCustomSchema(Expected, BaseSeedCustomSchema):
    pass


class TestSeedSpecificFormats(BaseSeedSpecificFormats):
    pass


class TestSimpleSeedEnabledViaConfig(BaseSimpleSeedEnabledViaConfig):
    pass


class TestEmptySeed(BaseTestEmptySeed):
    pass
