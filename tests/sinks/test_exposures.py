"""What exposures name as sinks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.sinks.exposures import Publication, publications
from dbt_incremental_dd.sinks.wanted import Wanted

_NODES = {
    "model.p.spend": {"schema": "Main", "alias": "spend", "config": {"materialized": "differential"}},
    "model.p.other": {"schema": "main", "alias": "other", "config": {"materialized": "differential"}},
    "model.p.plain": {"schema": "main", "alias": "plain", "config": {"materialized": "table"}},
}


def _of(given: Any, *read: str) -> list[Publication]:
    exposure = {
        "name": "crm",
        "depends_on": {"nodes": [f"model.p.{name}" for name in read or ("spend", "plain")]},
        "config": {"meta": {"differential": given}},
    }
    return publications([exposure, {"name": "none", "depends_on": {"nodes": []}, "config": {}}], _NODES, "/project")


def test_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRM_URL", "postgresql://u@h/d")
    found = _of({"table": "public.spend", "key": "customer", "options": {"url": {"env_var": "CRM_URL"}}})
    wanted = Wanted("public.spend", ("customer",), {"url": "postgresql://u@h/d"})
    assert found == [Publication("crm", "main.spend", "table", wanted)]
    assert "postgresql" not in repr(found), "it may hold a password"
    (found_files,) = _of({"files": "out", "format": "json"})
    assert found_files.wanted == Wanted("/project/out", format="json")
    (remote,) = _of({"files": "s3://b/out"})
    assert remote.wanted.target == "s3://b/out"
    (hook,) = _of({"webhook": "https://h/x", "key": ["a", "b"], "rejected": "r.jsonl"})
    assert hook.wanted == Wanted("https://h/x", ("a", "b"), rejected=Path("/project/r.jsonl"))
    assert _of(None) == []


@pytest.mark.parametrize(
    ("given", "read", "told"),
    [
        ({"key": "a"}, (), "it names 0 sinks"),
        ({"table": "t", "files": "f"}, (), "it names 2 sinks"),
        ({"table": "t", "keys": "a"}, (), "unknown setting keys"),
        ({"table": 1}, (), "table is 1"),
        ({"table": "t", "key": 1}, (), "key is 1"),
        ({"table": "t", "options": "x"}, (), "options is 'x'"),
        ({"topic": "t", "form": 1}, (), "form is 1"),
        (
            {"table": "t", "options": {"url": {"env_var": "NOT_SET"}}},
            (),
            "exposure crm: options.url is in the environment",
        ),
        ({"table": "t"}, ("plain",), "depends on 0 differential models"),
        ({"table": "t"}, ("spend", "other"), "depends on 2 differential models: main.other, main.spend"),
    ],
)
def test_mistakes(given: Any, read: tuple[str, ...], told: str) -> None:
    with pytest.raises(ConfigError, match="exposure crm") as error:
        _of(given, *read)
    assert told in str(error.value)
