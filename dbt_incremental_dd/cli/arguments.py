"""The arguments of ``dbt-dd``."""

from __future__ import annotations

import argparse
from pathlib import Path

from dbt_incremental_dd.version import version

_ABOUT = "Look at collections, explain, verify, query, compact and vacuum them. Most verbs need no Spark."


def parser() -> argparse.ArgumentParser:
    """The parser of ``dbt-dd``: ``verb``, its own arguments, and the collections' location, before or after the
    verb."""
    made = argparse.ArgumentParser(prog="dbt-dd", description=_ABOUT, parents=[_everywhere()])
    made.add_argument("--version", action="version", version=f"dbt-dd {version}")
    made.set_defaults(state_root=None, project_dir=None, profiles_dir=None, target=None)
    everywhere = _everywhere()
    verbs = made.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name: str, about: str) -> argparse.ArgumentParser:
        return verbs.add_parser(name, help=about, parents=[everywhere])

    first = verb("init", "writes a first project: a source of JSON files, and a model")
    first.add_argument("folder", type=Path, help="a new folder, or an empty one")
    status = verb("status", "every collection with its frontiers")
    status.add_argument("--json", action="store_true", help="as JSON lines")
    explain = verb("explain", "a model's differential plan, or its last run by operator")
    explain.add_argument("model")
    explain.add_argument("--analyze", action="store_true", help="what its last run took, by operator")
    verify = verb("verify", "stored contents against Spark's batch answer")
    verify.add_argument("model", nargs="*", help="models (default: all)")
    verify.add_argument("--files", action="store_true", help="only whether every stored file is as it was written")
    _query(verb("query", "a collection's rows as of a time"))
    _subscribe(verb("subscribe", "a collection's rows, and every change after them as it comes"))
    _publish(verb("publish", "writes a collection's changes to Kafka, PostgreSQL, a webhook, or files by time"))
    _serve(verb("serve", "collections over HTTP: rows, changes as they come, pages"))
    verb("token", "makes a random token for serve --users, and the digest that stands in that file")
    _watch(verb("watch", "runs what a change concerns, as soon as a source has it, or by target lags"))
    advance = verb("advance", "declares up to when a managed source is complete")
    advance.add_argument("source")
    advance.add_argument("--to", required=True, help="ISO timestamp or ms since 1970")
    advance.add_argument("--first", action="store_true", help="it is new: there is nothing of it yet")
    compact = verb("compact", "forgets history beyond the retained window, and merges files")
    compact.add_argument("model", nargs="*", help="collections (default: all)")
    compact.add_argument("--retain-history", help="for example '1 day' (default: each model's own)")
    vacuum = verb("vacuum", "removes files that nothing needs any more")
    vacuum.add_argument("model", nargs="*", help="collections (default: all)")
    vacuum.add_argument("--older-than", default="1 day", help="what readers may still be at stays (default: 1 day)")
    vacuum.add_argument("--orphans", action="store_true", help="also what no model of the project owns any more")
    verb("end-session", "ends the Spark session that keep_session has left, once nobody uses it")
    return made


def _everywhere() -> argparse.ArgumentParser:
    """Arguments without defaults: a verb's parser would overwrite values before the verb with its defaults. Parsers
    that share a parent also share its defaults."""
    made = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    where = made.add_argument_group("where the collections are")
    where.add_argument("--project-dir", help="the dbt project (default: the current folder)")
    where.add_argument("--profiles-dir", help="where profiles.yml is (default: as dbt finds it)")
    where.add_argument("--target", help="of the profile (default: its own)")
    where.add_argument("--state-root", help="where they are stored (default: as the profile says); alone, without one")
    return made


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows")
    return int(text)


def _query(query: argparse.ArgumentParser) -> None:
    query.add_argument("model")
    query.add_argument("--as-of", help="ISO timestamp or ms since 1970 (default: the latest final time)")
    query.add_argument("--limit", type=_count, default=100, help="rows at most (default: 100)")
    query.add_argument("--format", choices=("table", "json", "csv"), default="table")


def _subscribe(subscribe: argparse.ArgumentParser) -> None:
    subscribe.add_argument("model")
    subscribe.add_argument("--as-of", help="where it begins (default: the latest final time)")
    subscribe.add_argument("--up-to", help="where it ends, exclusive (default: never)")
    subscribe.add_argument("--no-snapshot", action="store_true", help="only what comes after --as-of")
    subscribe.add_argument("--progress", action="store_true", help="report each advance of the frontier")
    subscribe.add_argument("--select", help="SELECT ... FROM the model WHERE ...: some columns, some rows")
    subscribe.add_argument(
        "--key", nargs="+", default=[], help="report the state of each key: columns each of whose values has one row"
    )
    subscribe.add_argument("--name", help="continue the subscription of this name")
    subscribe.add_argument("--format", choices=("table", "json", "csv"), default="table")


def _publish(publish: argparse.ArgumentParser) -> None:
    publish.add_argument("model", nargs="?")
    target = publish.add_mutually_exclusive_group(required=True)
    target.add_argument("--exposure", help="an exposure of the project that names what is published, and where")
    target.add_argument("--topic", help="an existing topic of Kafka")
    target.add_argument("--table", help="a table of PostgreSQL, with its schema; created if it is missing")
    target.add_argument("--webhook", help="a URL to which each change is sent; DBT_DD_WEBHOOK_SECRET signs them")
    target.add_argument("--files", help="a folder, or a URI of object storage, for a file of each time")
    publish.add_argument("--rejected", type=Path, help="a file for changes that a webhook does not want")
    publish.add_argument("--key", nargs="+", default=[], help="columns each of whose values has one row")
    publish.add_argument("--form", choices=("upsert", "debezium"), help="of messages (default: upsert)")
    publish.add_argument("--format", choices=("parquet", "json"), help="of files (default: parquet)")
    publish.add_argument(
        "--option",
        action="append",
        default=[],
        help="of Kafka: bootstrap.servers=HOST:PORT, and others; of PostgreSQL: url=postgresql://USER@HOST/DATABASE",
    )
    what = publish.add_mutually_exclusive_group()
    what.add_argument("--once", action="store_true", help="publish what there is now, then stop")
    what.add_argument("--list-rejected", action="store_true", help="count the changes that a webhook did not want")
    what.add_argument("--resend", action="store_true", help="send them again, then stop")


def _serve(serve: argparse.ArgumentParser) -> None:
    serve.add_argument("--host", default="127.0.0.1", help="where it listens (default: 127.0.0.1, this machine alone)")
    serve.add_argument("--port", type=int, default=8580, help="0 for any that is free (default: 8580)")
    serve.add_argument(
        "--pgwire", type=int, nargs="?", const=6875, help="also speaks the Postgres protocol (default port: 6875)"
    )
    serve.add_argument("--pages", type=Path, help="a folder of pages of your own, served at /")
    serve.add_argument(
        "--statement-timeout", default="1 minute", help="for computing one SELECT (default: 1 minute; 0: any time)"
    )
    serve.add_argument(
        "--query-memory",
        default="25%",
        help="for all SELECTs together: 4GB, or a share of all (default: 25%%)",
    )
    serve.add_argument("--users", type=Path, help="a YAML file of users, their tokens and what each may read")
    serve.add_argument("--tls-cert", type=Path, help="serves by TLS: a PEM file with the certificate's chain")
    serve.add_argument("--tls-key", type=Path, help="a PEM file with its private key")
    serve.add_argument("--behind-proxy", action="store_true", help="a proxy in front of the server has TLS")
    serve.add_argument("--audit", type=Path, help="a file to which each access is written, as a line of JSON")
    serve.add_argument("--metrics", action="store_true", help="serves metrics for Prometheus at /metrics")
    serve.add_argument("--allow-origin", action="append", default=[], help="a site whose pages may read, too")


def _watch(watch: argparse.ArgumentParser) -> None:
    watch.add_argument("--select", nargs="+", default=[], help="models, as for `dbt run` (default: all)")
    watch.add_argument("--exclude", nargs="+", default=[], help="models that are left out")
    watch.add_argument("--publish", action="store_true", help="also publishes what the project's exposures name")
    watch.add_argument("--every", default="1 minute", help="everything also without news (default: 1 minute; 0: never)")
    watch.add_argument("--compact-every", default="10 minutes", help="(default: 10 minutes; 0: never)")
    watch.add_argument(
        "--on-missed-lag", metavar="COMMAND", help="run once a target_lag is missed, and once it is kept"
    )
    watch.add_argument(
        "--on-missed-lag-webhook", metavar="URL", help="told the same; DBT_DD_WEBHOOK_SECRET signs the requests"
    )
