"""``observe`` of the profile."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.observe.registry import KINDS
from dbt_incremental_dd.observe.settings import KNOWN, observe_settings


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"openlinage": {}}, "unknown setting observe.openlinage\n  Did you mean openlineage?"),
        (
            {"opentelemetry": {"url": "x"}},
            "unknown setting observe.opentelemetry.url\n  There are endpoint, service_name.",
        ),
        ({"openlineage": {"url": 5000}}, "observe.openlineage.url is 5000\n  Give a text."),
        ({"openlineage": "x"}, "observe.openlineage is 'x'\n  Give a mapping of url, namespace."),
        ([], "observe is []\n  Give a mapping of openlineage, opentelemetry."),
    ],
)
def test_mistakes(given: Any, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        observe_settings(given)
    assert str(error.value) == message


def test_what_is_right() -> None:
    assert observe_settings(None) == {} and KNOWN.keys() == KINDS.keys()
    given = {"openlineage": {"url": "http://a", "namespace": "n"}, "opentelemetry": None}
    assert observe_settings(given) == {"openlineage": given["openlineage"], "opentelemetry": {}}
