"""mkdocs' hook: the site's pages that are no files of this folder, and links that mean the same on the site.

The texts at the root of the repository become pages, the command line's reference is what its parser says, and the
references of Python and Airflow are made from docstrings.
"""

from __future__ import annotations

import contextlib
import io
import os
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from dbt_incremental_dd.cli.arguments import parser
from dbt_incremental_dd.cli.verbs import VERBS

ROOT = Path(__file__).parents[1]

TEXTS = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "example_project/README.md": "examples.md",
}
"""Each text of the repository outside of ``docs`` that is a page, and the page."""

_PLACES = {page: text for text, page in TEXTS.items()}

_LINK = re.compile(r"\[([^\[\]]+)\]\(([^)#:\s]+)(#[^)\s]*)?\)")
"""A relative link: its text, its target, its anchor."""

PYTHON = """# Python API

`dbt_incremental_dd.open` opens the collections under a state root. They are read from their logs and
files: no JVM is started.

::: dbt_incremental_dd.open

## Collections

::: dbt_incremental_dd.api.Database
::: dbt_incremental_dd.api.Collection

## What they return

::: dbt_incremental_dd.core.frontier.Frontiers
::: dbt_incremental_dd.trace.status.Status
::: dbt_incremental_dd.trace.status.Reclaimable
::: dbt_incremental_dd.trace.history.Entry

## Subscriptions

::: dbt_incremental_dd.subscribe.subscription.Subscription
    options:
      members: [at, schema, has_begun, has_ended, poll, wait, close, forget]
::: dbt_incremental_dd.subscribe.subscription.Batch

## Errors

::: dbt_incremental_dd.core.errors
    options:
      show_root_heading: false
      show_root_toc_entry: false
"""

AIRFLOW = """# Airflow reference

[Airflow](../airflow.md) shows these at work. The import name is `airflow_differential`.

## Sensors

All take `deferrable` (true) and `poke_interval` (30 seconds), too.

::: airflow_differential.sensors

## Operators

Those that run a command (all but `AdvanceFrontierOperator`) also take `spark_remote`, `env` and
`executable`. `CompactOperator` and `VerifyOperator` take `state_root` or `project_dir`, with
`profiles_dir`, `target` and `names`, the collections.

::: airflow_differential.operators

## Conditions

::: airflow_differential.conditions
    options:
      filters: ["!^_", "!^condition$", "!^imported$", "!^serialize$"]

## Assets

::: airflow_differential.assets

## Task groups

::: airflow_differential.task_group

## Triggers

::: airflow_differential.triggers
"""


def command_line() -> str:
    """The reference of ``dbt-dd``: what ``--help`` says, of it and of each verb."""
    parts = ["# Command line", _help(), *(f"## dbt-dd {verb}\n\n{_help(verb)}" for verb in VERBS)]
    return "\n\n".join(parts)


def _help(*arguments: str) -> str:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        parser().parse_args([*arguments, "--help"])
    return f"```text\n{shown.getvalue().rstrip()}\n```"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages."""
    os.environ["COLUMNS"] = "92"  # the width of the parser's texts
    made = {"reference/cli.md": command_line(), "reference/api.md": PYTHON, "reference/airflow.md": AIRFLOW}
    made |= {page: (ROOT / text).read_text() for text, page in TEXTS.items()}
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Its links lead to pages, where they lead to files of the repository. One to a file that is no page is text."""
    here = page.file.src_uri
    if here.startswith("reference/"):
        return markdown
    folder = posixpath.dirname(_PLACES.get(here, f"docs/{here}"))

    def moved(link: re.Match[str]) -> str:
        text, target, anchor = link.groups(default="")
        place = posixpath.normpath(posixpath.join(folder, target))
        on_site = TEXTS.get(place, place.removeprefix("docs/"))
        if files.get_file_from_path(on_site) is not None:
            return f"[{text}]({posixpath.relpath(on_site, posixpath.dirname(here) or '.')}{anchor})"
        return text if (ROOT / place).exists() else link[0]

    return _LINK.sub(moved, markdown)
