"""A first project: one source of JSON files, one model, and a profile that needs nothing but Java."""

from __future__ import annotations

import re
from pathlib import Path

from dbt_incremental_dd.core.errors import ConfigError

_FILES = {
    "dbt_project.yml": """\
name: {name}
profile: {name}
models:
  +materialized: differential
flags:
  send_anonymous_usage_stats: false
""",
    "profiles.yml": """\
{name}:
  target: dev
  outputs:
    dev: {{type: differential, schema: analytics}}
""",
    "models/sources.yml": """\
sources:
  - name: shop
    schema: shop
    tables:
      - name: orders
        columns:
          - {{name: id, data_type: bigint}}
          - {{name: customer, data_type: string}}
          - {{name: amount, data_type: "decimal(12,2)"}}
          - {{name: updated_at, data_type: timestamp}}
        config:
          meta:
            # A record replaces the one with its key; of two the later one counts.
            differential: {{envelope: upsert, key: id, order_by: updated_at, path: data/orders, format: json}}
""",
    "models/spend.sql": """\
select customer, count(*) as orders, sum(amount) as spend
from {{{{ source('shop', 'orders') }}}}
group by customer
""",
    "data/orders/1.json": """\
{{"id": 1, "customer": "ann", "amount": 5.00, "updated_at": "2024-01-01T10:00:00Z"}}
{{"id": 2, "customer": "bob", "amount": 8.50, "updated_at": "2024-01-01T11:00:00Z"}}
""",
    ".gitignore": """\
.dbt_incremental_dd/
logs/
target/
""",
}
_NEXT = """\
{folder} is a dbt project. Next:
  cd {folder}
  dbt run                  # builds the model spend
  dbt-dd query spend       # its rows
Then put another file into data/orders, and run again: only the new records are read."""


def write_first_project(folder: Path) -> str:
    """Writes the project into a new or empty folder. Returns the next steps as text.

    Raises ConfigError if the folder is not empty, or its name is not valid for a project.
    """
    name = folder.resolve().name.replace("-", "_")
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ConfigError(
            f"a project cannot be called {name!r}", "Use letters, digits and _ for the folder, with a letter first."
        )
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise ConfigError(f"{folder} is not an empty folder", "Give the name of a new one: dbt-dd init my_project.")
    try:
        for path, text in _FILES.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text.format(name=name), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error}", "Choose another folder.") from error
    return _NEXT.format(folder=folder)
