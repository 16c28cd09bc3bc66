"""``dbt-dd``: look at collections, explain, verify, query, compact and vacuum them. Most verbs need no Spark."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from dbt_incremental_dd.api import Collection, Database
from dbt_incremental_dd.core.errors import ConfigError, DifferentialError, FrontierError
from dbt_incremental_dd.core.time import format_time, parse_duration, parse_time
from dbt_incremental_dd.trace.status import Status
from dbt_incremental_dd.version import version

DEFAULT_ROOT = ".dbt_incremental_dd"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; 0 when it did what was asked, 1 when not, 2 for a wrong call."""
    options = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except DifferentialError as error:
        print(f"dbt-dd: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dbt-dd", description=__doc__)
    parser.add_argument("--version", action="version", version=f"dbt-dd {version}")
    parser.add_argument("--state-root", help=f"where collections are stored (default: <project-dir>/{DEFAULT_ROOT})")
    parser.add_argument("--project-dir", default=".", help="the dbt project (default: the current folder)")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    status = verbs.add_parser("status", help="every collection with its frontiers")
    status.add_argument("--json", action="store_true", help="as JSON lines")
    status.set_defaults(run=_status)
    explain = verbs.add_parser("explain", help="a model's differential plan")
    explain.add_argument("model")
    explain.set_defaults(run=_explain)
    verify = verbs.add_parser("verify", help="stored contents against Spark's batch answer")
    verify.add_argument("model", nargs="*", help="models (default: all)")
    verify.set_defaults(run=_verify)
    query = verbs.add_parser("query", help="a collection's rows as of a time")
    query.add_argument("model")
    query.add_argument("--as-of", help="ISO timestamp or ms since 1970 (default: the latest final time)")
    query.add_argument("--limit", type=int, default=100, help="rows at most (default: 100)")
    query.add_argument("--format", choices=("table", "json", "csv"), default="table")
    query.set_defaults(run=_query)
    subscribe = verbs.add_parser("subscribe", help="a collection's rows, and every change after them as it comes")
    subscribe.add_argument("model")
    subscribe.add_argument("--as-of", help="where it begins (default: the latest final time)")
    subscribe.add_argument("--up-to", help="before which it ends (default: never)")
    subscribe.add_argument("--no-snapshot", action="store_true", help="only what comes after --as-of")
    subscribe.add_argument("--progress", action="store_true", help="tell each advance of the frontier")
    subscribe.add_argument("--select", help="SELECT ... FROM the model WHERE ...: some columns, some rows")
    subscribe.add_argument("--key", nargs="+", default=[], help="tell what becomes of each value of these columns")
    subscribe.add_argument("--name", help="go on where the subscription of this name was")
    subscribe.add_argument("--format", choices=("table", "json", "csv"), default="table")
    subscribe.set_defaults(run=_subscribe)
    _add_publish(verbs.add_parser("publish", help="writes a collection's changes to a Kafka topic, exactly once"))
    _add_serve(verbs.add_parser("serve", help="collections over HTTP: rows, changes as they come, pages"))
    _add_watch(verbs.add_parser("watch", help="runs what a change concerns, as soon as a source has something new"))
    advance = verbs.add_parser("advance", help="says up to when a managed source is complete")
    advance.add_argument("source")
    advance.add_argument("--to", required=True, help="ISO timestamp or ms since 1970")
    advance.add_argument("--first", action="store_true", help="it is new: there is nothing of it yet")
    advance.set_defaults(run=_advance)
    compact = verbs.add_parser("compact", help="forgets history beyond the retained window, and merges files")
    compact.add_argument("model", nargs="*", help="collections (default: all)")
    compact.add_argument("--retain-history", help="for example '1 day' (default: each model's own)")
    compact.set_defaults(run=_compact)
    vacuum = verbs.add_parser("vacuum", help="removes files that nothing needs any more")
    vacuum.add_argument("model", nargs="*", help="collections (default: all)")
    vacuum.add_argument("--older-than", default="1 day", help="what readers may still be at stays (default: 1 day)")
    vacuum.set_defaults(run=_vacuum)
    return parser


def _add_publish(publish: argparse.ArgumentParser) -> None:
    publish.add_argument("model")
    publish.add_argument("--topic", required=True, help="an existing topic")
    publish.add_argument("--key", nargs="+", required=True, help="columns of which each value has one row")
    publish.add_argument("--form", choices=("upsert", "debezium"), default="upsert", help="(default: upsert)")
    publish.add_argument("--option", action="append", default=[], help="bootstrap.servers=HOST:PORT, and others")
    publish.add_argument("--once", action="store_true", help="what there is now, and no more")
    publish.set_defaults(run=_publish)


def _add_serve(serve: argparse.ArgumentParser) -> None:
    serve.add_argument("--host", default="127.0.0.1", help="where it listens (default: 127.0.0.1, this machine alone)")
    serve.add_argument("--port", type=int, default=8580, help="0 for any that is free (default: 8580)")
    serve.add_argument(
        "--pgwire", type=int, nargs="?", const=6875, help="also speaks the Postgres protocol (default port: 6875)"
    )
    serve.add_argument("--pages", type=Path, help="a folder of pages of your own, served at /")
    serve.add_argument("--allow-origin", action="append", default=[], help="a site whose pages may read, too")
    serve.set_defaults(run=_serve)


def _add_watch(watch: argparse.ArgumentParser) -> None:
    watch.add_argument("--profiles-dir", help="where profiles.yml is (default: as dbt finds it)")
    watch.add_argument("--target", help="of the profile (default: its own)")
    watch.add_argument("--select", nargs="+", default=[], help="models, as for `dbt run` (default: all)")
    watch.add_argument("--exclude", nargs="+", default=[], help="models that are left out")
    watch.add_argument("--every", default="1 minute", help="everything also without news (default: 1 minute; 0: never)")
    watch.add_argument("--compact-every", default="10 minutes", help="(default: 10 minutes; 0: never)")
    watch.set_defaults(run=_watch)


def state_root(options: argparse.Namespace) -> str:
    """The state root that a call means."""
    return options.state_root or os.path.join(os.path.abspath(options.project_dir), DEFAULT_ROOT)


def _database(options: argparse.Namespace) -> Database:
    return Database(state_root(options))


def _collection(options: argparse.Namespace, name: str) -> Collection:
    """A collection by its full name, or by its last part where only one has it."""
    return _database(options).find(name)


def _status(options: argparse.Namespace) -> int:
    rows = [_state(found) for found in _database(options).status()]
    if options.json:
        for row in rows:
            print(json.dumps(row))
        return 0
    if not rows:
        print(f"No collections under {state_root(options)}. Run `dbt run` first.")
        return 0
    shown = ("collection", "kind", "since", "at", "rows", "updates", "files", "bytes", "held back by")
    _print_table([{key: _shown(row[key.replace(" ", "_")]) for key in shown} for row in rows], shown)
    return 0


def _state(found: Status) -> dict[str, object]:
    """As it is printed: frontiers as times."""
    told = asdict(found)
    since = format_time(found.since) if found.since else "the beginning"
    return {"collection": told.pop("name"), **told, "since": since, "at": format_time(found.at)}


def _shown(value: object) -> str:
    return "?" if value is None else str(value)


def _explain(options: argparse.Namespace) -> int:
    from dbt_incremental_dd.runtime.explain import explain_model
    from dbt_incremental_dd.runtime.session import open_session

    collection = _collection(options, options.model)
    spark = open_session(state_root(options), {})
    print(explain_model(spark, collection.storage, collection.name))
    return 0


def _verify(options: argparse.Namespace) -> int:
    from dbt_incremental_dd.runtime.session import open_session
    from dbt_incremental_dd.runtime.verify import verify

    names = [_collection(options, name).name for name in options.model] or None
    spark = open_session(state_root(options), {})
    found = verify(spark, _database(options).storage, names)
    for one in found:
        word = "exact" if one.exact else f"WRONG: {one.missing} missing, {one.unexpected} unexpected"
        print(f"{one.model}  at {format_time(one.as_of)}  {one.rows} rows  {word}")
    return 0 if all(one.exact for one in found) else 1


def _vacuum(options: argparse.Namespace) -> int:
    from dbt_incremental_dd.runtime.vacuum import vacuum

    names = [_collection(options, name).name for name in options.model] or None
    for line in vacuum(_database(options).storage, names, parse_duration(options.older_than)):
        print(line)
    return 0


def _query(options: argparse.Namespace) -> int:
    collection = _collection(options, options.model)
    t = None if options.as_of is None else parse_time(options.as_of)
    table = collection.as_of(t).slice(0, options.limit)
    rows = [{name: value for name, value in row.items() if name != "dd_diff"} for row in table.to_pylist()]
    counts = table["dd_diff"].to_pylist()
    expanded = [row for row, count in zip(rows, counts, strict=True) for _ in range(count)][: options.limit]
    names = collection.schema.names
    if options.format == "json":
        for row in expanded:
            print(json.dumps(row, default=str))
    elif options.format == "csv":
        import csv

        writer = csv.DictWriter(sys.stdout, names)
        writer.writeheader()
        writer.writerows(expanded)
    else:
        _print_table([{n: "NULL" if row[n] is None else str(row[n]) for n in names} for row in expanded], names)
    return 0


def _subscribe(options: argparse.Namespace) -> int:
    from dbt_incremental_dd.subscribe.cursor import Cursor
    from dbt_incremental_dd.subscribe.lines import lines

    collection = _collection(options, options.model)
    subscription = collection.subscribe(
        options.as_of,
        not options.no_snapshot,
        options.up_to,
        select=options.select,
        key=options.key,
        name=options.name,
    )
    cursor = Cursor(subscription, options.progress)
    with contextlib.suppress(KeyboardInterrupt), subscription:
        for line in lines(cursor, subscription.schema, options.format, options.progress):
            print(line, flush=True)
    return 0


def _publish(options: argparse.Namespace) -> int:
    from dbt_incremental_dd.publish.kafka import Sink, options_of, publish

    sink = Sink(options.topic, tuple(options.key), options_of(options.option), options.form)
    with contextlib.suppress(KeyboardInterrupt):
        publish(_collection(options, options.model), sink, options.once)
    return 0


def _serve(options: argparse.Namespace) -> int:
    from dbt_incremental_dd.serve.server import Listening, serve

    token = os.environ.get("DBT_DD_TOKEN")
    listening = Listening(options.host, options.port, options.pgwire, token, tuple(options.allow_origin), options.pages)
    with contextlib.suppress(KeyboardInterrupt):
        serve(_database(options), listening)
    return 0


def _watch(options: argparse.Namespace) -> int:
    import threading

    from dbt_incremental_dd.watch.project import Project
    from dbt_incremental_dd.watch.watcher import Rhythm, Watched, watch

    every, compaction = (_seconds(text) for text in (options.every, options.compact_every))
    arguments = ["--target", options.target] if options.target else []
    folder = os.path.abspath(options.project_dir)
    project = Project(folder, options.profiles_dir, arguments, options.select, options.exclude)
    with contextlib.suppress(KeyboardInterrupt):
        watch([Watched(project, rhythm=Rhythm(every, compaction))], threading.Event())
    return 0


def _seconds(text: str) -> float:
    return 0.0 if text == "0" else parse_duration(text) / 1000


def _advance(options: argparse.Namespace) -> int:
    database, to = _database(options), parse_time(options.to)
    name = database.full_name(options.source)
    if "." not in name:
        raise ConfigError(f"{name} is no source that has been taken in", "Give its full name: schema.identifier.")
    found = database.advance(name, to, options.first)
    if found > to:
        raise FrontierError(
            f"{name} is complete up to {format_time(found)} already, which is final", "Give a later time, or none."
        )
    print(f"{name} is complete up to {format_time(found)}")
    return 0


def _compact(options: argparse.Namespace) -> int:
    from dbt_incremental_dd.runtime.compact import compact
    from dbt_incremental_dd.runtime.session import open_session

    names = [_collection(options, name).name for name in options.model] or None
    retain = None if options.retain_history is None else parse_duration(options.retain_history)
    spark = open_session(state_root(options), {})
    for line in compact(spark, _database(options).storage, names, retain):
        print(line)
    return 0


def _print_table(rows: Sequence[dict[str, str]], columns: Sequence[str]) -> None:
    widths = {c: max([len(c), *(len(row[c]) for row in rows)]) for c in columns}
    for row in [{c: c for c in columns}, *rows]:
        print("  ".join(row[c].ljust(widths[c]) for c in columns).rstrip())


if __name__ == "__main__":
    sys.exit(main())
