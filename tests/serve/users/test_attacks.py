"""What is hidden from a user stays hidden, whatever the user asks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import psycopg
import pytest

from dbt_incremental_dd.core.manifest import Adopted, ModelManifest
from dbt_incremental_dd.core.rights import Grant, Rights
from dbt_incremental_dd.query.engine import QueryEngine
from dbt_incremental_dd.query.session import Session
from dbt_incremental_dd.serve.users.tokens import digest
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.layout import Storage
from tests.serve.serving import Served, serving
from tests.subscribe.stored import Stored

AS_OF, UP_TO = "1970-01-01T00:00:00.010Z", "1970-01-01T00:00:00.031Z"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, dict[str, str]]]:
    """``a.kept``, of which ann may read the rows of the EU, beside ``secret.kept``, which is not hers."""
    folder = tmp_path_factory.mktemp("guarded")
    for name in ("a.kept", "secret.kept"):
        stored = Stored(folder / "state", name=name)
        stored.commit({10: Counter({(k, "eu" if k < 100 else f"hidden-{k}"): 1 for k in range(5_000)})}, 11)
        stored.commit({20: Counter({(7, "eu"): -1, (7, "hidden-now"): 1, (4_000, "hidden-4000"): -1})}, 31)
    (folder / "users.yml").write_text(
        f"users:\n  ann: {{tokens: ['{digest('ann')}'], read: ['a.*'], rows: {{'a.*': v = 'eu'}}}}\n"
        f"  cast: {{tokens: ['{digest('cast')}'], read: ['a.*'], rows: {{'a.*': \"replace(v, 'eu', '1')::int = 1\"}}}}\n"
        f"  bad: {{tokens: ['{digest('bad')}'], read: ['a.*'], rows: {{'a.*': region = 'eu'}}}}\n"
    )
    with serving(folder / "state", users=folder / "users.yml") as served:
        yield served, {"authorization": "Bearer ann"}


ATTACKS = [
    *("select * from secret.kept", "select * from memory.secret.kept", 'from "secret"."kept"'),
    "with kept as (select 1) select * from secret.kept",
    "with secret as (select 1) select (select count(*) from secret.kept)",
    "select * from kept where exists (select 1 from secret.kept)",
    "select * from kept, lateral (select * from secret.kept where k = kept.k)",
    "select * from 'stored://collections/secret.kept/trace/x.parquet'",
    "select * from read_parquet('stored://collections/a.kept/trace/*.parquet')",
    *("select * from duckdb_views()", "select view_definition from information_schema.views", "show all tables from x"),
    *("select * from query('from a.kept')", "from duckdb_columns()", "describe secret.kept", "summarize secret.kept"),
    "select * from pragma_show('secret.kept')",
    "select * from parquet_metadata('stored://collections/a.kept/trace/x.parquet')",
]
LEAKS = [
    "select count(*) as n from kept where v::int > 0 and v <> 'eu'",
    "select k from kept where v <> 'eu' and (v || 'x')::int > 0",
    "select k from kept where case when v like 'hidden%' then v::int else 1 end = 0",
    "select sum(case when v like 'hidden%' then v::int else 0 end) as n from kept",
    "select a.k from kept a join (select 4000::bigint as k) b using (k)",
    "select k from kept where k = 4000",
    "select k from kept where k > (select max(k) from kept)",
    "select v from kept where v <> 'eu' order by v limit 5",
    "select k from kept tablesample 100% where v <> 'eu'",
    "select distinct v from kept where v <> 'eu' union all select v from kept where v like 'h%'",
    "select k from kept where list_contains([4000, 7], k)",
]


@pytest.mark.parametrize("sql", ATTACKS)
def test_nothing_is_read_around_the_rights(guarded: tuple[Served, dict[str, str]], sql: str) -> None:
    served, headers = guarded
    answer = httpx.post(f"{served.url}/sql", json={"statement": sql}, headers=headers)
    assert answer.status_code == 400 or not answer.json()["rows"], answer.text
    assert "hidden" not in answer.text and "Known collections: a.kept." in answer.text + "Known collections: a.kept."
    with psycopg.connect(f"host=127.0.0.1 port={served.wire} user=u password=ann", autocommit=True) as connection:
        try:
            assert not connection.execute(sql).fetchall()
        except psycopg.Error as error:
            assert "hidden" not in str(error)


@pytest.mark.parametrize("sql", LEAKS)
def test_rows_that_are_hidden_cause_no_error_and_no_row(guarded: tuple[Served, dict[str, str]], sql: str) -> None:
    """A condition of the client's own is never computed on them."""
    served, headers = guarded
    answer = httpx.post(f"{served.url}/sql", json={"statement": sql}, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.json()["rows"] in ([], [{"n": 0}], [{"n": None}]), answer.text


def test_conditions_of_requests_are_not_computed_on_hidden_rows(guarded: tuple[Served, dict[str, str]]) -> None:
    served, headers = guarded
    where = {"where": "case when v like 'hidden%' then v::int else 1 end = 1", "limit": 10_000}
    found = httpx.get(f"{served.url}/collections/a.kept/rows", params=where, headers=headers).json()
    assert len(found["rows"]) == 99 and {row["v"] for row in found["rows"]} == {"eu"}
    url = f"{served.url}/collections/a.kept/changes"
    for more in ({}, {"where": where["where"]}, {"where": where["where"], "key": "k"}):
        text = httpx.get(
            url, params={**more, "up_to": UP_TO, "as_of": AS_OF, "snapshot": "false"}, headers=headers
        ).text
        # The row that leaves what may be read is a retraction, and nothing tells what it has become.
        assert "hidden" not in text and '"k": 7' in text and '"deleted": [{"k": 7' in text, text


def test_rows_for_which_a_condition_fails_are_hidden(guarded: tuple[Served, dict[str, str]]) -> None:
    served, _ = guarded
    answer = httpx.post(
        f"{served.url}/sql",
        json={"statement": "select count(*) n, max(v) v from kept"},
        headers={"authorization": "Bearer cast"},
    )
    assert answer.json()["rows"] == [{"n": 99, "v": "eu"}], answer.text
    url = f"{served.url}/collections/a.kept/changes?up_to={UP_TO}"
    text = httpx.get(url, headers={"authorization": "Bearer cast"}).text
    assert "hidden" not in text and text.count('"eu"') == 99


def test_a_table_that_was_adopted_is_not_told(tmp_path: Path) -> None:
    """Its name may be of what the user may not read; the number of values in a sample tells of rows."""
    stored = Stored(tmp_path / "state", name="a.kept")
    stored.commit({10: Counter({(1, "eu"): 1})}, 11)
    log, adopted = stored.place.log(), Adopted("secret.theirs", 10, "verified by a sample: the rows of 7 values of k")
    assert log is not None
    before = stored.place.read_manifest(log.manifest)
    assert isinstance(before, ModelManifest)
    log.commit(Commit(upper=12, manifest=stored.place.write_manifest(replace(before, adopted=adopted))))
    assert stored.collection.status().adopted == adopted.message
    (tmp_path / "users.yml").write_text(f"users:\n  ann: {{tokens: ['{digest('ann')}'], read: ['a.*']}}\n")
    with serving(tmp_path / "state", users=tmp_path / "users.yml") as served:
        text = httpx.get(f"{served.url}/collections", headers={"authorization": "Bearer ann"}).text
    assert "a.kept" in text and "secret" not in text and "sample" not in text


def test_a_condition_that_cannot_be_computed_shows_nothing(guarded: tuple[Served, dict[str, str]]) -> None:
    served, _ = guarded
    headers = {"authorization": "Bearer bad"}
    for answer in (
        httpx.get(f"{served.url}/collections/a.kept/rows", headers=headers),
        httpx.get(f"{served.url}/collections/a.kept/changes?up_to={UP_TO}", headers=headers),
        httpx.post(f"{served.url}/sql", json={"statement": "from kept"}, headers=headers),
    ):
        assert "the rights to its rows are wrong" in answer.text and "region" not in answer.text


def test_conditions_of_statements_stay_above_those_of_the_rights(guarded: tuple[Served, dict[str, str]]) -> None:
    """DuckDB computes neither in the other's place: the limit between them keeps both where they are."""
    served, _ = guarded
    rights = Rights((Grant(("a.*",), (("a.*", "v like 'eu%'"),)),))
    engine = QueryEngine(Storage(served.root), rights=rights)
    Session(engine).select("select * from kept").close()
    cursor = engine._connection.cursor()
    for sql in (
        "select * from kept where try_cast(v as int) = 7",
        "select * from kept a join kept b using (k) where a.k = 7",
    ):
        plan = cursor.execute(f"explain {sql}").fetchall()[0][1]
        above, limit, below = plan.partition("Streaming Limit")
        assert limit and "7" in above and "7" not in re.sub(r"\d{5,}|~.*rows", "", below.split("Streaming Limit")[0])
        assert "like" in below.lower() or "prefix" in below.lower()
    engine.close()
