"""An example project as a user of dbt-duckdb would have it: the same models, each a table built from the files."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import yaml

_CONFIG = re.compile(r"\{\{ *config\([^)]*\) *\}\}")
_ROW = "STRUCT(id BIGINT, merchant VARCHAR, amount VARCHAR, status VARCHAR)"
_WEATHER = {"origin": "VARCHAR", "weather_date": "DATE", "hour": "INTEGER"} | dict.fromkeys(
    ("temp", "wind_speed", "precip"), "DECIMAL(6,2)"
)
_EVENT = {"before": _ROW, "after": _ROW, "op": "VARCHAR", "source": "STRUCT(lsn BIGINT)"}
_VISIT = {"url": "VARCHAR", "user_id": "BIGINT", "device": "VARCHAR", "ms": "BIGINT"}


def latest(records: str, key: str, order: str, columns: str, where: str) -> str:
    """The latest record of each key, where it is not a deletion."""
    numbered = f"select *, row_number() over (partition by {key} order by {order} desc) as n from {records}"
    return f"(select {columns} from ({numbered}) where n = 1 and {where})"


def json_files(path: str, columns: dict[str, str]) -> str:
    """The records of a folder's files of JSON lines."""
    return f"read_json('{path}/*.json', format = 'newline_delimited', columns = {_struct(columns)})"


def _struct(columns: dict[str, str]) -> str:
    """As a call: braces would be dbt's."""
    return f"struct_pack({', '.join(f'{chr(34)}{name}{chr(34)} := {dtype!r}' for name, dtype in columns.items())})"


def sources_of(name: str, folder: Path) -> dict[str, str]:
    """What each source of an example is to DuckDB; the folder has its files."""
    data = str(folder.absolute())
    if name == "payments":
        events = f"(select * from {json_files(f'{data}/payments', _EVENT)} where op is not null)"
        columns = "after.id, after.merchant, after.amount::decimal(12,2) as amount, after.status"
        return {"shop.payments": latest(events, "coalesce(after.id, before.id)", "source.lsn", columns, "op <> 'd'")}
    if name == "clickstream":
        return {"web.visits": json_files(f"{data}/visits", _VISIT)}
    flights = f"read_parquet('{data}/flights/*.parquet')"
    return {
        "feed.flights": latest(flights, "flight_id", "recorded_at", "* exclude (n)", "status <> 'removed'"),
        "feed.weather": f"read_csv('{data}/weather/*.csv', header = true, columns = {_struct(_WEATHER)})",
        "feed.planes": f"read_parquet('{data}/planes/*.parquet')",
        "feed.airports": f"read_parquet('{data}/airports/*.parquet')",
    }


def write(example: Path, folder: Path, sources: Mapping[str, str]) -> None:
    """Writes the project, with the models of another one as tables. ``sources``: what each one is to DuckDB."""
    name = example.name
    (folder / "models").mkdir(parents=True)
    for model in (example / "models").glob("*.sql"):
        text = _CONFIG.sub("", model.read_text())
        (folder / "models" / model.name).write_text(text)
    if (example / "seeds").exists():
        shutil.copytree(example / "seeds", folder / "seeds")
    tables: dict[str, list[dict[str, object]]] = {}
    for source, text in sources.items():
        schema, table = source.split(".")
        meta = {"external_location": text}
        tables.setdefault(schema, []).append({"name": table, "meta": meta})
    entries = [{"name": schema, "tables": listed} for schema, listed in tables.items()]
    (folder / "models" / "sources.yml").write_text(yaml.safe_dump({"version": 2, "sources": entries}))
    project = {"name": name, "version": "1.0", "profile": name, "models": {"+materialized": "table"}}
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(project))
    output = {"type": "duckdb", "path": str(folder / "warehouse.duckdb"), "threads": 2}
    (folder / "profiles.yml").write_text(yaml.safe_dump({name: {"target": "dev", "outputs": {"dev": output}}}))
