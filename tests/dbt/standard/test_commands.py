"""Commands, configs and tests of dbt's, with dbt-spark's materializations and with differential models."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.aliases.test_aliases import BaseAliasErrors, BaseAliases, BaseSameAliasDifferentSchemas
from dbt.tests.adapter.caching.test_caching import (
    BaseCachingLowercaseModel,
    BaseCachingSelectedSchemaOnly,
    BaseCachingUppercaseModel,
    BaseNoPopulateCache,
)
from dbt.tests.adapter.concurrency.test_concurrency import BaseConcurrency
from dbt.tests.adapter.dbt_clone.test_dbt_clone import BaseCloneSameTargetAndState
from dbt.tests.adapter.dbt_debug.test_dbt_debug import BaseDebugInvalidProjectPostgres
from dbt.tests.adapter.dbt_show.test_dbt_show import BaseShowDoesNotHandleDoubleLimit, BaseShowLimit, BaseShowSqlHeader
from dbt.tests.adapter.empty.test_empty import (
    BaseTestEmpty,
    BaseTestEmptyInlineSourceRef,
    BaseTestEmptySeedFlag,
)
from dbt.tests.adapter.ephemeral.test_ephemeral import (
    BaseEphemeralErrorHandling,
    BaseEphemeralMulti,
    BaseEphemeralNested,
)
from dbt.tests.adapter.hooks.test_model_hooks import BaseDuplicateHooksInConfigs
from dbt.tests.adapter.hooks.test_run_hooks import BaseAfterRunHooks
from dbt.tests.adapter.query_comment.test_query_comment import (
    BaseEmptyQueryComments,
    BaseMacroArgsQueryComments,
    BaseMacroInvalidQueryComments,
    BaseMacroQueryComments,
    BaseNullQueryComments,
    BaseQueryComments,
)
from dbt.tests.adapter.relations.test_dropping_schema_named import BaseDropSchemaNamed
from dbt.tests.adapter.sample_mode.test_sample_mode import BaseSampleModeTest
from dbt.tests.adapter.store_test_failures_tests.basic import (
    StoreTestFailuresAsExceptions,
    StoreTestFailuresAsGeneric,
    StoreTestFailuresAsInteractions,
    StoreTestFailuresAsProjectLevelEphemeral,
    StoreTestFailuresAsProjectLevelOff,
    StoreTestFailuresAsProjectLevelView,
)
from dbt.tests.adapter.store_test_failures_tests.test_store_test_failures import (
    BaseStoreTestFailures,
    BaseStoreTestFailuresLimit,
)
from dbt.tests.adapter.unit_testing.test_case_insensitivity import BaseUnitTestCaseInsensivity
from dbt.tests.adapter.unit_testing.test_invalid_input import BaseUnitTestInvalidInput
from dbt.tests.adapter.unit_testing.test_quoted_reserved_word_column_names import (
    BaseUnitTestQuotedReservedWordColumnNames,
)
from dbt.tests.adapter.unit_testing.test_types import BaseUnitTestingTypes, BaseUnitTestingVarcharFixtureNoTruncation

SAME = (
    BaseAliasErrors, BaseCachingLowercaseModel, BaseCachingSelectedSchemaOnly, BaseCachingUppercaseModel,
    BaseCloneSameTargetAndState, BaseDebugInvalidProjectPostgres, BaseDuplicateHooksInConfigs, BaseAfterRunHooks,
    BaseDropSchemaNamed, BaseEphemeralErrorHandling, BaseMacroInvalidQueryComments, BaseMacroQueryComments,
    BaseEmptyQueryComments, BaseMacroArgsQueryComments, BaseNullQueryComments, BaseQueryComments, BaseNoPopulateCache,
    BaseShowSqlHeader, BaseTestEmptyInlineSourceRef, BaseTestEmptySeedFlag, StoreTestFailuresAsExceptions,
    StoreTestFailuresAsGeneric, StoreTestFailuresAsInteractions, StoreTestFailuresAsProjectLevelEphemeral,
    StoreTestFailuresAsProjectLevelOff, StoreTestFailuresAsProjectLevelView, BaseUnitTestQuotedReservedWordColumnNames,
    BaseStoreTestFailuresLimit, BaseTestEmpty, BaseUnitTestingVarcharFixtureNoTruncation,
)  # fmt: skip
BOTH = (
    BaseAliases, BaseSameAliasDifferentSchemas, BaseConcurrency, BaseEphemeralMulti, BaseEphemeralNested, BaseSampleModeTest,
    BaseShowLimit, BaseStoreTestFailures, BaseUnitTestCaseInsensivity, BaseUnitTestInvalidInput,
)  # fmt: skip
"""With differential models, too."""

for _base in (*SAME, *BOTH):
    _name = f"Test{_base.__name__.removeprefix('Base').removeprefix('Test')}"
    globals()[_name] = type(_name, (_base,), {"__module__": __name__})
for _base in BOTH:
    _name = f"Test{_base.__name__.removeprefix('Base')}Differential"
    globals()[_name] = type(_name, (_base,), {"__module__": __name__, "differential": True})


class TestShowDoesNotHandleDoubleLimit(BaseShowDoesNotHandleDoubleLimit):
    DATABASE_ERROR_MESSAGE = "Syntax error at or near 'limit'"


class Types:
    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        """SQL values, and the same in YAML."""
        return [
            ["1", "1"],
            ["2.0", "2.0"],
            ["'12345'", "12345"],
            ["'string'", "string"],
            ["true", "true"],
            ["date '2011-11-11'", "2011-11-11"],
            ["timestamp '2013-11-03 00:00:00-0'", "2013-11-03 00:00:00-0"],
        ]


class TestUnitTestingTypes(Types, BaseUnitTestingTypes):
    pass


class TestUnitTestingTypesDifferential(Types, BaseUnitTestingTypes):
    differential = True


class TestEmptyDifferential(BaseTestEmpty):
    """A model is not emptied: what is stored of it stays."""

    differential = True

    def assert_row_count(self, project: Any, relation_name: str, expected_row_count: int) -> None:
        super().assert_row_count(project, relation_name, 3)
