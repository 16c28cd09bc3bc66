"""What statements of others may call: every function of DuckDB is known, and those that are allowed do no harm."""

from __future__ import annotations

import duckdb
import pytest

from dbt_incremental_dd.core.errors import QueryError
from dbt_incremental_dd.untrusted.functions import ALLOWED, TABLES, is_refused
from dbt_incremental_dd.untrusted.parsed_select import parse_select
from dbt_incremental_dd.untrusted.sized import FORMATS, SIZED, macros


def of_duckdb() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    with duckdb.connect() as connection:
        for name, kind in connection.execute("SELECT function_name, function_type FROM duckdb_functions()").fetchall():
            found.setdefault(name.lower(), set()).add(kind)
    return found


LOOKED_AT = (2, 0, 1)
"""The newest version of DuckDB whose functions somebody has looked at."""


def unknown() -> set[str]:
    """Functions that are neither allowed nor known to be refused."""
    return {
        name
        for name, kinds in of_duckdb().items()
        if " " not in name and name not in ALLOWED | TABLES and not is_refused(name) and kinds != {"pragma"}
    }


def test_every_function_of_duckdb_is_allowed_or_refused() -> None:
    """A new version of DuckDB has others: look at what each does before it is listed."""
    if tuple(map(int, duckdb.__version__.split(".")[:3])) <= LOOKED_AT:
        assert not unknown()
    both = {name for name in ALLOWED | TABLES if is_refused(name)}
    assert both == {"histogram", "regexp_split_to_table", "pg_typeof", "pg_size_pretty", "pg_timezone_names"}


@pytest.mark.parametrize("name", sorted(unknown() | {"of_a_newer_duckdb"}))
@pytest.mark.parametrize("sql", ["select {}(1)", "select * from {}('x')"])
def test_what_nobody_has_looked_at_is_refused(name: str, sql: str) -> None:
    with pytest.raises(QueryError):
        parse_select(sql.format(name))


def test_no_allowed_function_is_told_what_to_read() -> None:
    with duckdb.connect() as connection:
        harmful = connection.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE has_side_effects "
            "OR parameters::VARCHAR ILIKE '%file%' OR parameters::VARCHAR ILIKE '%table_name%'"
        ).fetchall()
    assert {name for (name,) in harmful} & (ALLOWED | TABLES) <= {
        "random",
        "gen_random_uuid",
        "uuid",
        "uuidv4",
        "uuidv7",
    }


def test_functions_that_make_much_of_little_refuse_to() -> None:
    connection = duckdb.connect()
    for statement in macros():
        connection.execute(statement)
    fine = (
        "repeat('ab', 3), repeat([1], 2), lpad('a', 3, 'x'), rpad('a', 3, 'x'), bar(1, 0, 2), bar(1, 0, 2, 10), "
        "range(3), range(1, 3), range(10, 1, -2), generate_series(1, 3), levenshtein('a', 'b'), bitstring('1', 3), "
        "range(timestamp '2024-01-01', timestamp '2024-01-03', interval 1 day), list_resize([1], 3), "
        "list_resize([1], 3, 0), jaro_similarity('ab', 'ac'), equi_width_bins(0, 10, 2, true), range(NULL)"
    )
    guarded = connection.execute(f"SELECT {fine}").fetchall()
    assert guarded == duckdb.sql(f"SELECT {fine}").fetchall()
    for much in (
        *("repeat('ab', 1000000000)", "repeat(repeat('a', 90000), 90000)", "lpad('a', 2000000000, 'x')"),
        *("rpad('a', 2000000000, 'x')", "range(1000000000)", "generate_series(1, 1000000000)", "range(5, 1e9::int, 2)"),
        *("range(timestamp '2000-01-01', timestamp '2024-01-03', interval 1 second)", "bitstring('1', 1000000000)"),
        *("levenshtein(repeat('a', 90000), repeat('b', 90000))", "list_resize([1], 1000000000)"),
        *("bar(1, 0, 2, 1000000000)", "equi_width_bins(0, 10, 1000000000, true)"),
    ):
        with pytest.raises(duckdb.Error, match="too much"):
            connection.execute(f"SELECT {much}").fetchall()
    guarded_names = {
        name for (name,) in connection.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal"
        ).fetchall()
    }  # fmt: skip
    assert guarded_names == SIZED - FORMATS


@pytest.mark.parametrize(
    "sql",
    [
        "select format('{:>10}|{}', 'a', 2), printf('%5d %s', 1, 'x')",
        "with recursive r as (select 1 as n union all select n + 1 from r where n < 5) select sum(n) from r",
        "select * from (pivot (select 1 a, 2 b) on a in (1, 2) using sum(b))",
        "select list_transform([1, 2], lambda x: x + 1), [x * 2 for x in [1, 2]], {'a': 1}.a, [1, 2, 3][1:2]",
        "select row_number() over (partition by k order by v rows between 1 preceding and current row) from kept",
        "select k, count(*) filter (where v is not null), quantile_cont(k, 0.5) from kept group by rollup (k)",
        "select columns('k.*') from kept union all by name select 1 as k order by all limit 10%",
        "select case when v like 'a%' then try_cast(v as decimal(5, 2)) end, v collate nocase from kept qualify true",
        "from kept a asof join kept b on a.k >= b.k select a.k, b.v using sample 10 rows",
        "select date_trunc('month', t), extract(epoch from t), t at time zone 'utc', strftime(t, '%Y') from kept",
        "select unnest([1, 2]), * exclude (k) replace (upper(v) as v) from kept where k in (select k from kept)",
        "summarize kept",
        "describe kept",
        "show tables",
        "values (1, 'a'), (2, 'b')",
        "select v.upper().repeat(2), x'41', 1::enum('1'), interval 3 day from kept where exists (from kept)",
        "select json_extract_string(v, '$.a'), v->>'$.b', to_json(k) from kept, json_each('[1]'), range(3)",
    ],
)
def test_what_analysts_write_is_read(sql: str) -> None:
    assert set(parse_select(sql).tables) <= {("", "kept")} | {("", name) for name in parse_select(sql).defined}


@pytest.mark.parametrize(
    "sql",
    [
        "select format('{:>1000000000}', 'a')",
        "select format('{:>{}}', 'a', 1000000000)",
        "select printf('%1000000000d', 1)",
        "select printf('%*d', 1000000000, 1)",
        "select format(v, 1) from kept",
        "select system.main.repeat('a', 1000000000)",
        "select main.repeat('a', 1000000000)",
        "select pg_catalog.lpad('a', 1000000000, 'x')",
        "select * from system.main.kept",
        "select getenv('HOME')",
        f"select {'(' * 20_000}1{')' * 20_000}",
        f"select {'1 + ' * 60_000}1",
        f"select '{'a' * 300_000}'",
        "select \ud800",
        "",
        ";",
    ],
)
def test_what_is_not(sql: str) -> None:
    with pytest.raises(QueryError):
        parse_select(sql)
