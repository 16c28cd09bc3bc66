"""The suite's basic tests, with dbt-spark's materializations and with differential models."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.basic.test_adapter_methods import BaseAdapterMethod
from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations
from dbt.tests.adapter.basic.test_empty import BaseEmpty
from dbt.tests.adapter.basic.test_ephemeral import BaseEphemeral
from dbt.tests.adapter.basic.test_generic_tests import BaseGenericTests
from dbt.tests.adapter.basic.test_incremental import (
    BaseIncremental,
    BaseIncrementalBadStrategy,
    BaseIncrementalNotSchemaChange,
)
from dbt.tests.adapter.basic.test_singular_tests import BaseSingularTests
from dbt.tests.adapter.basic.test_singular_tests_ephemeral import BaseSingularTestsEphemeral
from dbt.tests.adapter.basic.test_table_materialization import BaseTableMaterialization
from dbt.tests.adapter.basic.test_validate_connection import BaseValidateConnection
from dbt.tests.adapter.constraints import fixtures as constraints
from dbt.tests.adapter.constraints.test_constraints import (
    BaseConstraintsRollback,
    BaseTableConstraintsColumnsEqual,
    BaseViewConstraintsColumnsEqual,
)
from dbt.tests.adapter.relations.test_changing_relation_type import BaseChangeRelationTypeValidator


class TestSimpleMaterializations(BaseSimpleMaterializations):
    pass


class TestSingularTests(BaseSingularTests):
    pass


class TestSingularTestsEphemeral(BaseSingularTestsEphemeral):
    pass


class TestSingularTestsEphemeralDifferential(BaseSingularTestsEphemeral):
    differential = True


class TestEmpty(BaseEmpty):
    pass


class TestEphemeral(BaseEphemeral):
    pass


class TestIncremental(BaseIncremental):
    pass


class TestIncrementalNotSchemaChange(BaseIncrementalNotSchemaChange):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"name": "incremental", "models": {"+incremental_strategy": "append"}}


class TestIncrementalBadStrategy(BaseIncrementalBadStrategy):
    pass


class TestGenericTests(BaseGenericTests):
    pass


class TestGenericTestsDifferential(BaseGenericTests):
    differential = True


class TestAdapterMethod(BaseAdapterMethod):
    pass


class TestTableMaterialization(BaseTableMaterialization):
    pass


class TestTableMaterializationDifferential(BaseTableMaterialization):
    differential = True


class TestValidateConnection(BaseValidateConnection):
    pass


class TestChangeRelationType(BaseChangeRelationTypeValidator):
    def test_changing_materialization_changes_relation_type(self, project: Any) -> None:
        super().test_changing_materialization_changes_relation_type(project)
        for other in ("table", "view", "incremental"):
            self._run_and_check_materialization("differential")
            self._run_and_check_materialization(other, extra_args=["--full-refresh"])


def contract(sql: dict[str, str]) -> dict[str, str]:
    """Models with the suite's contract, in Spark's types."""
    return {
        **sql,
        "constraints_schema.yml": constraints.model_schema_yml.replace("data_type: text", "data_type: string"),
    }


class Types:
    """Spark's types: in SQL, in a contract, and in messages."""

    @pytest.fixture
    def string_type(self) -> str:
        return "string"

    @pytest.fixture
    def int_type(self) -> str:
        return "int"

    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return [
            ["1", "int", "int"],
            ["'1'", "string", "string"],
            ["true", "boolean", "boolean"],
            ["timestamp'2013-11-03 00:00:00-07'", "timestamp", "timestamp"],
            ["array('a','b','c')", "array<string>", "array<string>"],
            ["cast('1' as decimal(10,2))", "decimal(10,2)", "decimal(10,2)"],
        ]


class TestViewContract(Types, BaseViewConstraintsColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        wrong_name, wrong_order = constraints.my_model_view_wrong_name_sql, constraints.my_model_view_wrong_order_sql
        return contract({"my_model_wrong_name.sql": wrong_name, "my_model_wrong_order.sql": wrong_order})


class TestContractDifferential(Types, BaseTableConstraintsColumnsEqual):
    differential = True

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        wrong_name, wrong_order = constraints.my_model_wrong_name_sql, constraints.my_model_wrong_order_sql
        return contract({"my_model_wrong_name.sql": wrong_name, "my_model_wrong_order.sql": wrong_order})

    @pytest.fixture(autouse=True)
    def differential_ones(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sql = constraints.my_model_data_type_sql
        assert '"table"' in sql
        monkeypatch.setattr(constraints, "my_model_data_type_sql", sql.replace('"table"', '"differential"'))


class TestConstraintsRollbackDifferential(BaseConstraintsRollback):
    differential = True

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return contract({"my_model.sql": constraints.my_model_sql})

    @pytest.fixture(scope="class")
    def null_model_sql(self) -> str:
        return constraints.my_model_with_nulls_sql.replace('"table"', '"differential"')

    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> list[str]:
        return ["not_null on id is violated by rows", "id: NULL"]
