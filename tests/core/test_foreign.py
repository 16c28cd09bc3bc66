"""Errors of others in a line."""

from __future__ import annotations

import pytest

from dbt_incremental_dd.core.foreign import reason


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "An error occurred while calling o1.sql.\n: java.io.IOException: no room\n\tat java.base/x",
            "IOException: no room",
        ),
        ("java.lang.A: one\n\tat x\nCaused by: org.b.C: deepest\n\tat y", "C: deepest"),
        ("Answer from Java side is empty", "Spark's JVM has ended, perhaps for want of memory"),
    ],
)
def test_the_reason_is_in_their_own_words(text: str, said: str) -> None:
    assert reason(RuntimeError(text)).startswith(said)


def test_a_jvm_that_is_gone_refuses_connections() -> None:
    assert "spark.driver.memory" in reason(ConnectionRefusedError(111, "Connection refused"))
