"""Manifests as values: what ``manifests/`` holds was written when they were dicts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.manifest import (
    Adopted,
    Manifest,
    ModelManifest,
    RecordedChange,
    RecordedRun,
    SourceManifest,
    StoredPosition,
    rows_after,
)
from dbt_incremental_dd.core.manifest_form import _FORMS
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import parse
from dbt_incremental_dd.trace.layout import CollectionStore, Storage

STORED = {path.stem: path.read_text() for path in (Path(__file__).parent / "manifests").glob("*.json")}


def text(manifest: Manifest) -> str:
    return json.dumps(manifest.to_json(), sort_keys=True)


def schema(**columns: str) -> Schema:
    return Schema(tuple(Column(name, parse(dtype)) for name, dtype in columns.items()))


@pytest.fixture
def place(tmp_path: Path) -> CollectionStore:
    return Storage(str(tmp_path)).collection("s.m")


@pytest.mark.parametrize("name", STORED)
def test_what_was_stored_is_read_and_written_alike(place: CollectionStore, name: str) -> None:
    number = place.write_manifest(Manifest.from_json(json.loads(STORED[name])))
    assert Path(place.uri, "manifests", f"{number}.json").read_text() == STORED[name]
    assert place.read_manifest(number) == Manifest.from_json(json.loads(STORED[name]))


@pytest.mark.parametrize("name", STORED)
def test_what_an_older_version_did_not_write_is_not_added(name: str) -> None:
    stored = json.loads(STORED[name])
    for entry in stored.keys() - {"format", "kind"}:
        older = {key: value for key, value in stored.items() if key != entry}
        assert Manifest.from_json(older).to_json() == older, entry
        moved = replace(Manifest.from_json(older), inner={"reduce1.sums": 9})
        assert moved.to_json() == {**older, "inner": {"reduce1.sums": 9}}


def test_a_run_writes_what_runs_wrote() -> None:
    sql = "SELECT k, sum(v) AS v FROM w0.t GROUP BY k"
    manifest = ModelManifest(
        schema=schema(k="integer", v="decimal(20,2)"),
        rows=3,
        change=RecordedChange("rebuild", 3, 3, 0, 0.174),
        inner={"reduce1.sums": 3},
        fingerprint="62060097d69fa10947f77a0cc615f2f4cf562ce08a03f8aa8d24274fb91b0f66",
        relation="`w0`.`m`",
        sql=sql,
        inputs={"w0.t": "w0.t"},
        position=StoredPosition(at=1003, as_of=1002, inputs={}),
        can_recompute=True,
        runs=tuple(
            RecordedRun(*run) for run in [("build", 2, 2, 1.148), ("build", 3, 3, 0.174), ("delta", 1, 3, 0.036)]
        ),
    )
    assert text(manifest) == STORED["position"]


def test_an_intake_writes_what_intakes_wrote() -> None:
    files = {"1.json": [60, 1795533150558490550], "2.json": [30, 1795533151206275069]}
    columns = schema(id="long", v="string", pos="integer")
    manifest = SourceManifest(
        schema=columns,
        rows=2,
        change=RecordedChange("delta", 1, 1, 1, 0.043),
        sorted_by=("id",),
        envelope="upsert",
        records=columns,
        progress={"files": files, "kind": "folder"},
    )
    assert text(manifest) == STORED["source"]
    dead = Manifest(kind="malformed", schema=schema(file="string", record="string"))
    assert text(dead) == STORED["malformed"]


def test_rows_that_are_not_known_are_said_to_be() -> None:
    change = RecordedChange("delta", None, 2, 1, 0.1)
    entries = SourceManifest(rows=None, change=change).to_json()
    assert entries["rows"] is None and entries["change"]["input_rows"] is None
    assert Manifest.from_json(entries).to_json() == entries
    assert rows_after(None, 2, 1) == 1 and rows_after(SourceManifest(), 2, 1) is None
    assert rows_after(SourceManifest(rows=5), 2, 1) == 6


def test_defaults_are_of_what_is_not_said() -> None:
    manifest = Manifest.from_json({"kind": "model", "format": 1})
    assert isinstance(manifest, ModelManifest)
    assert (manifest.schema, manifest.rows, manifest.change, manifest.can_recompute) == (None, None, None, None)
    assert (manifest.retain_history, manifest.inner, manifest.contract) == (86_400_000, {}, "")


@pytest.mark.parametrize("kind", ["model", "source", "malformed", "of a later version", None])
def test_entries_that_are_not_known_are_kept(kind: str | None) -> None:
    later = {"later": {"x": [1]}, "implicit": ["kind"], "unknown": 1, "format": 1} | ({"kind": kind} if kind else {})
    manifest = Manifest.from_json(later)
    assert manifest.kind == (kind or "")
    assert replace(manifest, sorted_by=("k",)).to_json() == {**later, "sorted_by": ["k"]}


def test_an_adoption_is_kept_and_told() -> None:
    adopted = Adopted("a.b", 7, "verified whole")
    manifest = ModelManifest(adopted=adopted, unbuilt=("reduce1.sums",), behind=True)
    entries = json.loads(json.dumps(manifest.to_json()))
    found = Manifest.from_json(entries)
    assert isinstance(found, ModelManifest)
    assert (found.adopted, found.unbuilt) == (adopted, ("reduce1.sums",))
    assert found.to_json() == entries
    assert adopted.message == "adopted from a.b, verified whole"
    assert Adopted("a.b", 7, "").message == "adopted from a.b, not verified"
    assert not {"adopted", "unbuilt"} & ModelManifest().to_json().keys()


def test_an_entry_of_another_kind_is_kept() -> None:
    entries = {"format": 1, "kind": "source", "sql": "SELECT 1"}
    assert Manifest.from_json(entries).to_json() == entries


CHANGE = json.loads(STORED["model"])["change"]
FLAWS: dict[str, list[Any]] = {
    "kind": [1, None],
    "sql": [1],
    "contract": [None],
    "envelope": [[]],
    "schema": [7, "", "{}", None],
    "records": ["x"],
    "sorted_by": ["k", [1]],
    "fallbacks": [{}],
    "inputs": [["x"], {"x": 1}],
    "inner": [{"x": "1 OR 1"}, {"x": True}, []],
    "runs": [[["x"]], [["build", 1, 1, "1"]], [["other", 1, 1, 1]], {}],
    "temporal": [1],
    "can_recompute": ["true"],
    "retain_history": ["1", True],
    "rows": ["1", False, 1.5],
    "target_lag": ["5 minutes", 0, True],
    "change": [[], {**CHANGE, "rows_added": "<b>"}, {**CHANGE, "strategy": 1}, {**CHANGE, "input_rows": ""}],
    "progress": [[]],
    "unbuilt": ["reduce1", [1]],
    "adopted": [{}, "x", {"table": "t", "at": "1", "verified": ""}, {"table": 1, "at": 1, "verified": ""}],
    "position": [{}, {"at": 1, "as_of": 1, "inputs": [1]}, {"at": "1", "as_of": 1, "inputs": {}}],
}


@pytest.mark.parametrize("entry", FLAWS)
def test_entries_of_another_form_are_refused(place: CollectionStore, entry: str) -> None:
    number = place.write_manifest(ModelManifest())
    path = Path(place.uri, "manifests", f"{number}.json")
    for kind in ("model", "source", "malformed"):
        for value in FLAWS[entry]:
            path.write_text(json.dumps({"format": 1, "kind": kind, entry: value}))
            with pytest.raises(StateError) as raised:
                place.read_manifest(number)
            wanted = f"the manifest of s.m at {path} cannot be read: its entry {entry} is none of this version's"
            assert raised.value.message == wanted


def test_every_entry_has_a_form() -> None:
    assert ModelManifest.entries() | SourceManifest.entries() == _FORMS.keys()


@pytest.mark.parametrize("stored", ["", "{", "[]", "7", "null", '"kind"'])
def test_what_is_no_manifest_is_refused(place: CollectionStore, stored: str) -> None:
    number = place.write_manifest(ModelManifest())
    Path(place.uri, "manifests", f"{number}.json").write_text(stored)
    with pytest.raises(StateError, match=r"the manifest of s\.m at .* cannot be read"):
        place.read_manifest(number)


def test_another_format_is_refused(place: CollectionStore) -> None:
    number = place.write_manifest(ModelManifest())
    Path(place.uri, "manifests", f"{number}.json").write_text('{"kind": "model", "format": 2}')
    with pytest.raises(StateError, match=r"s\.m was stored in format 2, this version reads 1"):
        place.read_manifest(number)
    assert place.read_manifest(None) is None
    with pytest.raises(StateError, match="cannot be read"):
        place.read_manifest(number + 1)
