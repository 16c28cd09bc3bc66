"""The warehouse built anew by DuckDB, from the same files: what a user would do who has one machine and no Spark.

``python -m benchmarks.tpcdi.in_duckdb FOLDER``: the project in the folder, whose models are translated by sqlglot. The
tables are stored in the folder's ``warehouse.duckdb``.
"""

from __future__ import annotations

import re
import sys
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import duckdb
import sqlglot
import yaml
from sqlglot import exp

WAREHOUSE = "warehouse.duckdb"
_REFERENCE = re.compile(r"\{\{ (?:ref|source)\((?:'\w+', )?'(\w+)'\) \}\}")
_REF = re.compile(r"\{\{ ref\('(\w+)'\) \}\}")


def build(folder: Path) -> None:
    """All tables, each after those that it reads."""
    models = {path.stem: path.read_text() for path in (folder / "models").rglob("*.sql")}
    file = folder / WAREHOUSE
    file.unlink(missing_ok=True)
    with duckdb.connect(str(file)) as connection:
        connection.execute("set timezone = 'UTC'")
        for statement in _sources(folder):
            connection.execute(statement)
        for name in TopologicalSorter({name: _REF.findall(sql) for name, sql in models.items()}).static_order():
            connection.execute(f"create table {name} as {translated(models[name])}")


def translated(sql: str) -> str:
    """A model's SQL in DuckDB's words."""
    tree = sqlglot.parse_one(_REFERENCE.sub(r"\1", sql), read="spark")
    for call in reversed(list(tree.find_all(exp.Anonymous))):
        call.replace(_translated(call))
    return tree.sql("duckdb")


def _translated(call: exp.Anonymous) -> exp.Expression:
    """A call of a function that sqlglot leaves as it is."""
    name, given = call.name.lower(), call.expressions
    if name == "xpath_string":
        pattern = exp.Literal.string(_pattern(given[1].name))
        return exp.Anonymous(this="regexp_extract", expressions=[given[0], pattern, exp.Literal.number(1)])
    if name == "to_timestamp_ntz":
        form = exp.Literal.string(_FORMATS[given[1].name if given[1:] else ""])
        return exp.Anonymous(this="try_strptime", expressions=[given[0], form])
    return call


_FORMATS = {"yyyyMMdd-HHmmss": "%Y%m%d-%H%M%S", "": "%Y-%m-%dT%H:%M:%S"}


def _pattern(path: str) -> str:
    """Matches the value of an attribute or an element, which the lines have once each."""
    name = path.rpartition("/")[2]
    return rf'\b{name[1:]}="([^"]*)"' if name.startswith("@") else f"<{name}>([^<]*)</{name}>"


def _sources(folder: Path) -> list[str]:
    """Statements that make the sources' files views."""
    (source,) = yaml.safe_load((folder / "models" / "sources.yml").read_text())["sources"]
    return [_source(table, folder / "data" / table["name"]) for table in source["tables"]]


def _source(table: dict[str, Any], place: Path) -> str:
    options = table["config"]["meta"]["differential"].get("options", {})
    types = {column["name"]: _TYPES.get(column["data_type"], column["data_type"]) for column in table["columns"]}
    if not any(place.iterdir()):  # DuckDB wants at least one
        columns = ", ".join(f"cast(null as {kind}) as {name}" for name, kind in types.items())
        return f"create view {table['name']} as select {columns} where false"
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in types.items())
    given = f"delim = '{options.get('sep', ',')}', quote = '{options.get('quote', _QUOTE)}', {_AS_SPARK}"
    return f"create view {table['name']} as select * from read_csv('{place}/*', {given}, columns = {{{columns}}})"


_QUOTE = '"'
_AS_SPARK = "header = false, auto_detect = false, null_padding = true"
_TYPES = {"string": "varchar", "timestamp_ntz": "timestamp", "int": "integer"}


if __name__ == "__main__":
    build(Path(sys.argv[1]))
