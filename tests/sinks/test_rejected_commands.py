"""``dbt-dd publish --list-rejected``, ``--resend``, and the number of rejected changes in ``dbt-dd status``."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from dbt_incremental_dd.cli import main
from dbt_incremental_dd.sinks.webhook import publish
from tests.sinks.receiver import SECRET_TEXT, Receiver, sink_to
from tests.subscribe.stored import Stored


def test_commands_count_and_resend(
    tmp_path: Path, receiver: Receiver, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, stored = sink_to(receiver, rejected=tmp_path / "rejected.jsonl"), Stored(tmp_path / "state")
    stored.commit({1: Counter({(k, "a"): 1 for k in range(7)})}, 2)
    receiver.answer = lambda event: 422
    publish(stored.collection, sink, once=True)
    _project(tmp_path, receiver.url)
    where = ["--project-dir", str(tmp_path), "--profiles-dir", str(tmp_path)]

    def told(*arguments: str) -> tuple[int, str]:
        status = main([*arguments, *where])
        shown = capsys.readouterr()
        return status, shown.out + shown.err

    assert re.search(r"rejected\nm\.kept .* 7\n", told("status")[1]), "without the secret that its publisher needs"
    assert json.loads(told("status", "--json")[1])["rejected"] == 7
    status, text = told("publish", "--exposure", "crm", "--list-rejected")
    assert status == 1 and "options.secret" in text
    monkeypatch.setenv("CRM_SECRET", SECRET_TEXT)
    status, text = told("publish", "--exposure", "crm", "--list-rejected")
    assert status == 0 and re.search(r"status 422 +7 +1970-01-01 00:00:00\.001", text), text
    receiver.answer = lambda event: 400 if event["key"]["k"] == 3 else 200
    status, text = told("publish", "--exposure", "crm", "--resend")
    assert (status, text) == (1, f"6 delivered, 1 rejected again: they stay in {sink.rejected}\n")
    receiver.answer = lambda event: 200
    assert told("publish", "--exposure", "crm", "--resend") == (0, "1 delivered\n")
    assert told("publish", "--exposure", "crm", "--list-rejected")[1] == f"No rejected changes in {sink.rejected}.\n"
    assert re.search(r"rejected\nm\.kept .* 0\n", told("status")[1])
    (tmp_path / "rejected.jsonl").write_text("?\n")
    assert re.search(r"rejected\nm\.kept .* \?\n", told("status")[1])
    assert told("publish", "kept", "--files", "out", "--resend")[0] == 1


def _project(folder: Path, url: str) -> None:
    """A project that dbt has parsed, with an exposure."""
    (folder / "dbt_project.yml").write_text("{name: p, profile: p}")
    target = {"type": "differential", "schema": "m", "state_root": str(folder / "state")}
    (folder / "profiles.yml").write_text(json.dumps({"p": {"target": "dev", "outputs": {"dev": target}}}))
    given = {"webhook": url, "key": "k", "rejected": "rejected.jsonl", "options": {"secret": {"env_var": "CRM_SECRET"}}}
    exposure = {
        "name": "crm",
        "depends_on": {"nodes": ["model.p.kept"]},
        "config": {"meta": {"differential": given}},
    }
    model = {"schema": "m", "alias": "kept", "config": {"materialized": "differential"}}
    manifest = {"nodes": {"model.p.kept": model}, "exposures": {"exposure.p.crm": exposure}}
    (folder / "target").mkdir()
    (folder / "target/manifest.json").write_text(json.dumps(manifest))
