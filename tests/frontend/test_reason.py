"""What is said of an error is short; what it was in full is in the log."""

from __future__ import annotations

import logging

import pytest
from sqlglot.errors import ParseError

from dbt_incremental_dd.frontend.parsed import NotParsed, parsed
from dbt_incremental_dd.frontend.reason import readable


@pytest.mark.parametrize("error", [KeyError("c8 of the plan"), ParseError("near c8")])
def test_the_detail_of_an_unforeseen_failure_is_logged(caplog: pytest.LogCaptureFixture, error: Exception) -> None:
    with caplog.at_level(logging.DEBUG, logger="dbt_incremental_dd"):
        said = readable(error)
    assert said
    assert "c8" not in said
    assert "c8" in caplog.text
    assert caplog.records[0].exc_info is not None


@pytest.mark.parametrize(
    "sql",
    [
        "WITH identifier('v')(x) AS (VALUES (1)) SELECT x FROM v",
        "SELECT rank() OVER IDENTIFIER('w') FROM t WINDOW w AS (ORDER BY k)",
    ],
)
def test_what_the_parser_stumbles_over_is_not_parsed(sql: str) -> None:
    with pytest.raises(NotParsed, match="cannot be parsed"):
        _ = parsed(sql).tree
