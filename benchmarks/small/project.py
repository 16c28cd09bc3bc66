"""The same models as dbt projects of two materializations, over the same files.

``stg_...`` keep each row's latest record, ``int_...`` are full joins of aggregates by day, and ``daily_metrics`` is
a full join of these over a spine of days; sums are of doubles.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.compared import append_source, write_yaml
from benchmarks.small.feed import COLUMNS, SOURCES

_STAGED = """
select id, parent_id, user_id, amount, state, cast(created_at as date) as created_on,
  cast(closed_at as date) as closed_on, created_at, closed_at, coalesce(state, 'open') = 'open' as is_open
from {source}
qualify row_number() over (partition by id order by seq desc) = 1
"""
_BY_DAY = """
with opened as (
  select created_on as day, count(*) as opened, sum(cast(amount as double)) as opened_amount,
    count(distinct user_id) as openers
  from {stg} group by created_on
), closed as (
  select closed_on as day, count(*) as closed, sum(cast(amount as double)) as closed_amount,
    sum(cast(unix_timestamp(closed_at) - unix_timestamp(created_at) as double)) / 3600 as hours
  from {stg} where state <> 'open' and closed_on is not null group by closed_on
), merged as (
  select closed_on as day, count(*) as merged, sum(cast(amount as double)) as merged_amount
  from {stg} where state = 'merged' and closed_on is not null group by closed_on
)
select coalesce(opened.day, closed.day, merged.day) as day,
  coalesce(opened.opened, 0) as opened, coalesce(closed.closed, 0) as closed, coalesce(merged.merged, 0) as merged,
  opened.opened_amount, closed.closed_amount, merged.merged_amount, opened.openers, closed.hours
from opened full outer join closed on opened.day = closed.day
full outer join merged on coalesce(opened.day, closed.day) = merged.day
"""
_ISSUES = """
with notes as (
  select parent_id, count(*) as comments, sum(cast(amount as double)) as comment_amount, max(created_at) as last_comment
  from {comments} group by parent_id
), checks as (
  select parent_id, count(*) as reviews, sum(cast(amount as double)) as review_amount
  from {reviews} group by parent_id
)
select i.id, i.user_id, i.created_on, i.state, cast(i.amount as double) as amount,
  coalesce(notes.comments, 0) as comments, notes.comment_amount, notes.last_comment,
  coalesce(checks.reviews, 0) as reviews, checks.review_amount
from {issues} i left join notes on notes.parent_id = i.id left join checks on checks.parent_id = i.id
"""
_USERS = """
select user_id, count(*) as issues, sum(amount) as amount, sum(comment_amount) as comment_amount,
  sum(case when state = 'open' then 1 else 0 end) as still_open, max(last_comment) as last_comment,
  avg(amount) as average
from {issue_facts} group by user_id
"""
_DAILY = """
with spine as (
  select explode(sequence(bounds.first, bounds.last, interval 1 day)) as day
  from (select min(created_on) as first, max(created_on) as last from {stg_issues}) bounds
), commits as (
  select created_on as day, count(*) as commits, sum(cast(amount as double)) as commit_amount
  from {stg_commits} group by created_on
), deploys as (
  select created_on as day, count(*) as deploys, sum(cast(amount as double)) as deploy_amount
  from {stg_deploys} group by created_on
)
select coalesce(spine.day, i.day, p.day, r.day, commits.day, deploys.day) as day,
  i.opened as issues_opened, i.closed as issues_closed, i.opened_amount as issue_amount, i.hours as issue_hours,
  p.opened as pulls_opened, p.merged as pulls_merged, p.merged_amount, r.opened as reviews, r.opened_amount as reviewed,
  commits.commits, commits.commit_amount, deploys.deploys, deploys.deploy_amount
from spine
full outer join {issues_by_day} i on i.day = spine.day
full outer join {pulls_by_day} p on p.day = coalesce(spine.day, i.day)
full outer join {reviews_by_day} r on r.day = coalesce(spine.day, i.day, p.day)
full outer join commits on commits.day = coalesce(spine.day, i.day, p.day, r.day)
full outer join deploys on deploys.day = coalesce(spine.day, i.day, p.day, r.day, commits.day)
"""
_WEEKLY = """
select date_trunc('week', day) as week, sum(issues_opened) as issues_opened, sum(pulls_merged) as pulls_merged,
  sum(issue_amount) as issue_amount, sum(deploy_amount) as deploy_amount, count(*) as days
from {daily_metrics} group by date_trunc('week', day)
"""

MODELS = {
    **{f"stg_{name}": _STAGED.replace("{source}", f"{{{name}}}") for name in SOURCES},
    **{f"int_{name}_by_day": _BY_DAY.replace("{stg}", f"{{stg_{name}}}") for name in ("issues", "pulls", "reviews")},
    "int_issue_facts": _ISSUES.replace("{", "{stg_"),
    "user_metrics": _USERS.replace("{issue_facts}", "{int_issue_facts}"),
    "daily_metrics": _DAILY.replace("{issues_", "{int_issues_")
    .replace("{pulls_", "{int_pulls_")
    .replace("{reviews_", "{int_reviews_"),
    "weekly_metrics": _WEEKLY,
}
"""Their SQL, with ``{name}`` for a source or a model."""


def write_project(folder: Path, schema: str, materialized: str, data: Path, metered: Mapping[str, str]) -> None:
    """A dbt project over the files in ``data``; both may share one session. ``metered``: its settings."""
    config = {"name": schema, "profile": schema, "models": {"+materialized": materialized}}
    write_yaml(folder / "dbt_project.yml", {**config, "flags": {"send_anonymous_usage_stats": False}})
    target = {"type": "differential", "schema": schema, "server_side_parameters": dict(metered)}
    target["state_root"] = str(folder.parent / "state")
    write_yaml(folder / "profiles.yml", {schema: {"target": "dev", "outputs": {"dev": target}}})
    names = {name: f"{{{{ ref('{name}') }}}}" for name in MODELS}
    if materialized == "differential":
        write_yaml(
            folder / "models" / "sources.yml",
            {"version": 2, "sources": [append_source("service", SOURCES, COLUMNS, data)]},
        )
        names |= {name: f"{{{{ source('service', '{name}') }}}}" for name in SOURCES}
    else:
        names |= {name: f"parquet.`{data / name}`" for name in SOURCES}
    for name, sql in MODELS.items():
        (folder / "models" / f"{name}.sql").parent.mkdir(parents=True, exist_ok=True)
        (folder / "models" / f"{name}.sql").write_text(sql.format(**names))
