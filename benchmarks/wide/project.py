"""The same 50 models as dbt projects of several materializations: chains of five over each source.

``bronze`` cleans, ``current`` keeps each order's latest record, ``trend`` runs over each customer's orders,
``customers`` sums, ``summary`` joins a source's customers with their trend and with the next source's. The
hand-written incremental project reads what is newer than what it has, and merges by key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.compared import DELTA_SETTINGS, append_source, has_delta, write_yaml
from benchmarks.wide.feed import COLUMNS, SOURCES


@dataclass(frozen=True)
class Layer:
    """A model of each source: ``{source}``, the layers over it by name, ``{next_customers}`` over the following one.

    ``newer`` is put where the text has ``{newer}``, in incremental runs only; in it, ``{this}`` is the model itself.
    ``key``: what such a run merges by; None where it appends.
    """

    sql: str
    newer: str
    key: str | None


LAYERS = {
    "bronze": Layer(
        "select id, customer_id, amount, upper(status) as status, ts, seq from {source} where id is not null {newer}",
        "and seq > (select max(seq) from {this})",
        None,
    ),
    "current": Layer(
        "select id, customer_id, amount, status, ts, seq from {bronze} {newer}"
        " qualify row_number() over (partition by id order by seq desc) = 1",
        "where seq > (select max(seq) from {this})",
        "id",
    ),
    "trend": Layer(
        "select id, customer_id, amount, seq, lag(amount) over (partition by customer_id order by ts, id) as previous,"
        " sum(amount) over (partition by customer_id order by ts, id) as running from {current} {newer}",
        "where customer_id in (select customer_id from {current} where seq > (select max(seq) from {this}))",
        "id",
    ),
    "customers": Layer(
        "select customer_id, count(*) as orders, sum(amount) as total, max(seq) as seq from {current} {newer}"
        " group by customer_id",
        "where customer_id in (select customer_id from {current} where seq > (select max(seq) from {this}))",
        "customer_id",
    ),
    "summary": Layer(
        "select c.customer_id, c.orders, c.total, n.total as next_total, t.peak,"
        " greatest(c.seq, coalesce(n.seq, 0), coalesce(t.seq, 0)) as seq from {customers} c"
        " left join {next_customers} n on n.customer_id = c.customer_id"
        " left join (select customer_id, max(running) as peak, max(seq) as seq from {trend} group by customer_id) t"
        " on t.customer_id = c.customer_id {newer}",
        "where greatest(c.seq, coalesce(n.seq, 0), coalesce(t.seq, 0)) > (select max(seq) from {this})",
        "customer_id",
    ),
}


def write_project(folder: Path, schema: str, materialized: str, data: Path, metered: Mapping[str, str]) -> None:
    """A dbt project over the events in ``data``; all projects may share one session. ``metered``: its settings."""
    config = {"name": schema, "profile": schema, "models": {"+materialized": materialized}}
    write_yaml(folder / "dbt_project.yml", {**config, "flags": {"send_anonymous_usage_stats": False}})
    settings = {**(DELTA_SETTINGS if has_delta() else {}), **metered}
    target = {"type": "differential", "schema": schema, "threads": 2, "server_side_parameters": settings}
    target["state_root"] = str(folder.parent / "state")
    write_yaml(folder / "profiles.yml", {schema: {"target": "dev", "outputs": {"dev": target}}})
    if materialized == "differential":
        write_yaml(
            folder / "models" / "sources.yml",
            {"version": 2, "sources": [append_source("wide", SOURCES, COLUMNS, data)]},
        )
    for layer, definition in LAYERS.items():
        for i in range(len(SOURCES)):
            path = folder / "models" / f"{layer}_{i}.sql"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_sql(definition, i, materialized, data))


def _sql(layer: Layer, i: int, materialized: str, data: Path) -> str:
    following = (i + 1) % len(SOURCES)
    names = {name: f"{{{{ ref('{name}_{i}') }}}}" for name in LAYERS}
    names["next_customers"] = f"{{{{ ref('customers_{following}') }}}}"
    names["source"] = f"parquet.`{data}/{SOURCES[i]}`"
    if materialized == "differential":
        names["source"] = f"{{{{ source('wide', '{SOURCES[i]}') }}}}"
    if materialized != "incremental":
        return layer.sql.format(newer="", **names)
    newer = layer.newer.format(this="{{ this }}", **names)
    head = "{{ config(file_format='delta', incremental_strategy='append') }}\n"
    if layer.key:
        head = f"{{{{ config(file_format='delta', incremental_strategy='merge', unique_key='{layer.key}') }}}}\n"
    return head + layer.sql.format(newer=f"{{% if is_incremental() %}} {newer} {{% endif %}}", **names)
