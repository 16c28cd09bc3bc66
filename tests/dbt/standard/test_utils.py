"""dbt's cross-database macros and data types."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.utils import fixture_listagg
from dbt.tests.adapter.utils.data_types.test_type_bigint import BaseTypeBigInt
from dbt.tests.adapter.utils.data_types.test_type_boolean import BaseTypeBoolean
from dbt.tests.adapter.utils.data_types.test_type_float import BaseTypeFloat
from dbt.tests.adapter.utils.data_types.test_type_int import BaseTypeInt
from dbt.tests.adapter.utils.data_types.test_type_numeric import BaseTypeNumeric
from dbt.tests.adapter.utils.data_types.test_type_string import BaseTypeString
from dbt.tests.adapter.utils.data_types.test_type_timestamp import BaseTypeTimestamp
from dbt.tests.adapter.utils.test_any_value import BaseAnyValue
from dbt.tests.adapter.utils.test_array_append import BaseArrayAppend
from dbt.tests.adapter.utils.test_array_concat import BaseArrayConcat
from dbt.tests.adapter.utils.test_array_construct import BaseArrayConstruct
from dbt.tests.adapter.utils.test_bool_or import BaseBoolOr
from dbt.tests.adapter.utils.test_cast import BaseCast
from dbt.tests.adapter.utils.test_cast_bool_to_text import BaseCastBoolToText
from dbt.tests.adapter.utils.test_concat import BaseConcat
from dbt.tests.adapter.utils.test_current_timestamp import BaseCurrentTimestampNaive
from dbt.tests.adapter.utils.test_date import BaseDate
from dbt.tests.adapter.utils.test_date_spine import BaseDateSpine
from dbt.tests.adapter.utils.test_date_trunc import BaseDateTrunc
from dbt.tests.adapter.utils.test_dateadd import BaseDateAdd
from dbt.tests.adapter.utils.test_datediff import BaseDateDiff
from dbt.tests.adapter.utils.test_equals import BaseEquals
from dbt.tests.adapter.utils.test_escape_single_quotes import BaseEscapeSingleQuotesBackslash
from dbt.tests.adapter.utils.test_except import BaseExcept
from dbt.tests.adapter.utils.test_generate_series import BaseGenerateSeries
from dbt.tests.adapter.utils.test_get_intervals_between import BaseGetIntervalsBetween
from dbt.tests.adapter.utils.test_get_powers_of_two import BaseGetPowersOfTwo
from dbt.tests.adapter.utils.test_hash import BaseHash
from dbt.tests.adapter.utils.test_intersect import BaseIntersect
from dbt.tests.adapter.utils.test_last_day import BaseLastDay
from dbt.tests.adapter.utils.test_length import BaseLength
from dbt.tests.adapter.utils.test_listagg import BaseListagg
from dbt.tests.adapter.utils.test_null_compare import BaseMixedNullCompare, BaseNullCompare
from dbt.tests.adapter.utils.test_position import BasePosition
from dbt.tests.adapter.utils.test_replace import BaseReplace
from dbt.tests.adapter.utils.test_right import BaseRight
from dbt.tests.adapter.utils.test_safe_cast import BaseSafeCast
from dbt.tests.adapter.utils.test_source_freshness_custom_info import BaseCalculateFreshnessMethod
from dbt.tests.adapter.utils.test_split_part import BaseSplitPart
from dbt.tests.adapter.utils.test_string_literal import BaseStringLiteral
from dbt.tests.adapter.utils.test_timestamps import BaseCurrentTimestamps
from dbt.tests.adapter.utils.test_validate_sql import BaseValidateSqlMethod

SAME = (
    BaseAnyValue, BaseArrayAppend, BaseArrayConcat, BaseArrayConstruct, BaseBoolOr, BaseCalculateFreshnessMethod, BaseCast,
    BaseCastBoolToText, BaseConcat, BaseCurrentTimestampNaive, BaseDate, BaseDateAdd, BaseDateDiff, BaseDateSpine,
    BaseDateTrunc, BaseEquals, BaseEscapeSingleQuotesBackslash, BaseExcept, BaseGenerateSeries, BaseGetIntervalsBetween,
    BaseGetPowersOfTwo, BaseHash, BaseIntersect, BaseLength, BaseMixedNullCompare, BaseNullCompare, BasePosition, BaseReplace,
    BaseRight, BaseSafeCast, BaseStringLiteral, BaseTypeBigInt, BaseTypeBoolean, BaseTypeFloat, BaseTypeInt, BaseTypeNumeric,
    BaseTypeString, BaseTypeTimestamp,
)  # fmt: skip
"""As they are."""
for _base in SAME:
    _name = f"Test{_base.__name__.removeprefix('Base')}"
    globals()[_name] = type(_name, (_base,), {"__module__": __name__})


class TestLastDay(BaseLastDay):
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:  # an empty field of a seed is text to dbt-spark
        days = "2018-01-02,month,2018-01-31\n2018-01-02,quarter,2018-03-31\n2018-01-02,year,2018-12-31\n"
        return {"data_last_day.csv": f"date_day,date_part,result\n{days}"}


class TestSplitPart(BaseSplitPart):
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        rows = "a|b|c,|,a,b,c,c\n1|2|3,|,1,2,3,3\nEMPTY|EMPTY|EMPTY,|,EMPTY,EMPTY,EMPTY,EMPTY\n"
        return {"data_split_part.csv": f"parts,split_on,result_1,result_2,result_3,result_4\n{rows}"}


class TestListagg(BaseListagg):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        """dbt-spark's macro knows no order: of the suite's groups the one whose rows are equal."""
        calls = {
            "string_text', \"'_|_'\"": "g_|_g_|_g",
            "string_text', \"', '\"": "g, g, g",
            "DISTINCT string_text', \"','\"": "g",
            "string_text'": "g,g,g",
        }
        queries = (
            f"select {{{{ listagg('{call}) }}}} as actual, '{expected}' as expected" for call, expected in calls.items()
        )
        sql = " union all ".join(f"{query} from {{{{ ref('data_listagg') }}}} where group_col = 3" for query in queries)
        return {"test_listagg.yml": fixture_listagg.models__test_listagg_yml, "test_listagg.sql": sql}


class TestCurrentTimestamps(BaseCurrentTimestamps):
    @pytest.fixture(scope="class")
    def expected_schema(self) -> dict[str, Any]:
        names = ("current_timestamp", "current_timestamp_in_utc_backcompat", "current_timestamp_backcompat")
        return dict.fromkeys(names, "timestamp")

    @pytest.fixture(scope="class")
    def expected_sql(self) -> None:
        return None


class TestValidateSqlMethod(BaseValidateSqlMethod):
    pass
