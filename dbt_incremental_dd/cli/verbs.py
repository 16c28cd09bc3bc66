"""The verbs of ``dbt-dd``. Those that need Spark or dbt import them."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from dbt_incremental_dd.api import Collection, Database
from dbt_incremental_dd.cli.first_project import write_first_project
from dbt_incremental_dd.cli.freshness import FRESHNESS_COLUMNS, freshness_cells, freshness_row
from dbt_incremental_dd.cli.profile import locate, project_folder, project_of
from dbt_incremental_dd.core.errors import ConfigError, FrontierError
from dbt_incremental_dd.core.standard_webhooks import SECRET
from dbt_incremental_dd.core.time import format_time, parse_duration, parse_time
from dbt_incremental_dd.subscribe.json_values import python_rows
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.progress import size_text
from dbt_incremental_dd.trace.status import Status

if TYPE_CHECKING:
    from dbt_incremental_dd.relation.lazy_session import LazySession


def _database(options: argparse.Namespace) -> Database:
    found = locate(options)
    return Database(found.state_root, found.storage_options, found.thresholds)


def _collection(options: argparse.Namespace, name: str) -> Collection:
    """A collection by its full name, or by its last part if that is unique."""
    return _database(options).find(name)


@contextlib.contextmanager
def _session(options: argparse.Namespace) -> Iterator[LazySession]:
    from dbt_incremental_dd.runtime.session import lazy_session

    found = locate(options)
    session = lazy_session(found.state_root, found.settings, found.storage_options, keep=found.keep)
    yield session
    session.memory.leave()


def _init(options: argparse.Namespace) -> int:
    print(write_first_project(options.folder))
    return 0


def _status(options: argparse.Namespace) -> int:
    database = _database(options)
    found = database.status()
    fresh = database.freshness() if any(one.target_lag is not None for one in found) else {}
    rows = [{**_status_row(one), **freshness_row(fresh.get(one.name))} for one in found]
    if options.json:
        for row in rows:
            print(json.dumps(row))
        return 0
    if not rows:
        return _print_no_collections(options)
    shown = ["collection", "kind", "since", "at", "rows", "updates", "files", "bytes", "held back by"]
    shown += ["adopted"] if any(one.adopted for one in found) else []
    cells = [{key: _cell(row[key.replace(" ", "_")]) for key in shown} for row in rows]
    if fresh:
        shown += FRESHNESS_COLUMNS
        cells = [{**row, **freshness_cells(fresh.get(one.name))} for row, one in zip(cells, found, strict=True)]
    _print_table(cells, shown)
    return 0


def _print_no_collections(options: argparse.Namespace) -> int:
    print(f"No collections under {locate(options).state_root}. Run `dbt run` first.")
    return 0


def _status_row(found: Status) -> dict[str, object]:
    """A status as it is printed, with frontiers as timestamps."""
    row = asdict(found)
    since = format_time(found.since) if found.since else "the beginning"
    return {"collection": row.pop("name"), **row, "since": since, "at": format_time(found.at)}


def _cell(value: object) -> str:
    return "?" if value is None else str(value)


def _explain(options: argparse.Namespace) -> int:
    from dbt_incremental_dd.runtime.explain import explain_model
    from dbt_incremental_dd.runtime.run_log.told import explain_last_run

    collection = _collection(options, options.model)
    if options.analyze:
        print(explain_last_run(collection.storage, collection.name))
        return 0
    with _session(options) as session:
        print(explain_model(session, collection.storage, collection.name))
    return 0


def _verify(options: argparse.Namespace) -> int:
    from dbt_incremental_dd.runtime.verify import verify

    names = [_collection(options, name).name for name in options.model] or None
    if not _database(options).collections():
        return _print_no_collections(options)
    if options.files:
        return _verify_files(_database(options).storage, names)
    with _session(options) as session:
        found = verify(session.spark, _database(options).storage, names)
    for one in found:
        word = "exact" if one.exact else f"WRONG: {one.missing} missing, {one.unexpected} unexpected"
        print(f"{one.model}  at {format_time(one.as_of)}  {one.rows} rows  {word}")
    return 0 if all(one.exact for one in found) else 1


def _verify_files(storage: Storage, names: list[str] | None) -> int:
    from dbt_incremental_dd.runtime.scrub import scrub

    damaged = 0
    for one in scrub(storage, names):
        damaged += bool(one.damage)
        row = f"DAMAGED: {one.damage}" if one.damage else f"{one.files} files, {size_text(one.bytes)}  intact"
        print(f"{one.name}  {row}")
    if damaged:
        print("Restore what is damaged, or rebuild it: docs/operations.md, What is damaged.")
    return 1 if damaged else 0


def _vacuum(options: argparse.Namespace) -> int:
    from dbt_incremental_dd.runtime.vacuum import vacuum

    names = [_collection(options, name).name for name in options.model] or None
    storage = _database(options).storage
    if names is None:
        for line in _orphans(options, storage):
            print(line)
    for line in vacuum(storage, names, parse_duration(options.older_than)):
        print(line)
    return 0


def _orphans(options: argparse.Namespace, storage: Storage) -> Iterator[str]:
    """Reports the collections that no model of the project owns, or removes them."""
    from dbt_incremental_dd.cli.graph import owners
    from dbt_incremental_dd.runtime.orphans import orphans, remove_orphans

    folder = project_folder(options)
    own = None if folder is None else owners(folder)
    if own is None:
        if options.orphans:
            raise ConfigError("what no model owns is known only of a project that dbt has parsed", "Run dbt parse.")
        return
    found = orphans(storage, own)
    if options.orphans:
        yield from remove_orphans(found)
        return
    for orphan in found:
        yield f"{orphan.place.name}: an orphan, {orphan.why}; `dbt-dd vacuum --orphans` removes it"


def _query(options: argparse.Namespace) -> int:
    collection = _collection(options, options.model)
    t = None if options.as_of is None else parse_time(options.as_of)
    table = collection.as_of(t).slice(0, options.limit)
    rows = [{name: value for name, value in row.items() if name != "dd_diff"} for row in python_rows(table)]
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
        snapshot=not options.no_snapshot,
        up_to=options.up_to,
        select=options.select,
        key=options.key,
        name=options.name,
    )
    cursor = Cursor(subscription, progress=options.progress)
    with contextlib.suppress(KeyboardInterrupt), subscription:
        for line in lines(cursor, subscription.schema, options.format, progress=options.progress):
            print(line, flush=True)
    return 0


def _publish(options: argparse.Namespace) -> int:
    from dbt_incremental_dd.cli.publishing import wanted_by
    from dbt_incremental_dd.sinks.registry import SINKS

    name, kind, wanted = wanted_by(options)
    with contextlib.suppress(KeyboardInterrupt):
        SINKS[kind](_collection(options, name), wanted, once=options.once)
    return 0


def _serve(options: argparse.Namespace) -> int:
    from dbt_incremental_dd.serve.server import ServerOptions, serve
    from dbt_incremental_dd.untrusted.limits import Limits, parse_memory

    if (options.tls_cert is None) != (options.tls_key is None):
        raise ConfigError("TLS takes a certificate and its key", "Set --tls-cert and --tls-key.")
    listening = ServerOptions(
        options.host,
        options.port,
        options.pgwire,
        token=os.environ.get("DBT_DD_TOKEN"),
        origins=tuple(options.allow_origin),
        pages=options.pages,
        limits=Limits(parse_memory(options.query_memory), _seconds(options.statement_timeout) or None),
        users=options.users,
        tls=None if options.tls_cert is None else (options.tls_cert, options.tls_key),
        behind_proxy=options.behind_proxy,
        audit=options.audit,
        metrics=options.metrics,
    )
    with contextlib.suppress(KeyboardInterrupt):
        serve(_database(options), listening, _print_line)
    return 0


def _token(_: argparse.Namespace) -> int:
    from dbt_incremental_dd.serve.users.tokens import digest, new_token

    token = new_token()
    print(f"token   {token}\ndigest  {digest(token)}")
    print("The token is for its user alone. The digest stands in the file of users.", file=sys.stderr)
    return 0


def _watch(options: argparse.Namespace) -> int:
    import threading

    from dbt_incremental_dd.cli.publishing import publishing
    from dbt_incremental_dd.runtime.run_log.log import written_aside
    from dbt_incremental_dd.runtime.session import require_startable
    from dbt_incremental_dd.watch.alerts import Alerts
    from dbt_incremental_dd.watch.project import Project
    from dbt_incremental_dd.watch.watcher import Intervals, WatchedProject, watch

    require_startable(locate(options).settings)
    every, compaction = (_seconds(text) for text in (options.every, options.compact_every))
    arguments = ["--target", options.target] if options.target else []
    folder, profiles = project_of(options)
    project = Project(folder, profiles, arguments, options.select, options.exclude)
    secret = os.environ.get(SECRET, "")
    watched = WatchedProject(
        project,
        _print_line,
        Intervals(every, compaction),
        Alerts.of(options.on_missed_lag, options.on_missed_lag_webhook, secret),
    )
    print(f"Watching the sources of {folder}; the first run may take a minute. Ctrl-C ends it.", file=sys.stderr)
    nobody = contextlib.nullcontext()
    published = publishing(watched, lambda: _database(options)) if options.publish else nobody
    with published, written_aside(), contextlib.suppress(KeyboardInterrupt):
        watch([watched], threading.Event())
    return 0


def _print_line(line: str) -> None:
    """Prints a line and flushes it."""
    print(line, flush=True)


def _seconds(text: str) -> float:
    return 0.0 if text == "0" else parse_duration(text) / 1000


def _advance(options: argparse.Namespace) -> int:
    database, to = _database(options), parse_time(options.to)
    name = database.full_name(options.source)
    if "." not in name:
        raise ConfigError(f"{name} is no source that has been taken in", "Give its full name: schema.identifier.")
    found = database.advance(name, to, first=options.first)
    if found > to:
        raise FrontierError(
            f"{name} is complete up to {format_time(found)} already, which is final", "Give a later time, or none."
        )
    print(f"{name} is complete up to {format_time(found)}")
    return 0


def _compact(options: argparse.Namespace) -> int:
    from dbt_incremental_dd.runtime.compact import compact

    names = [_collection(options, name).name for name in options.model] or None
    if not _database(options).collections():
        return _print_no_collections(options)
    retain = None if options.retain_history is None else parse_duration(options.retain_history)
    with _session(options) as session:
        for line in compact(session, _database(options).storage, names, retain):
            print(line)
    return 0


def _end_session(options: argparse.Namespace) -> int:
    from dbt_incremental_dd.runtime.kept_session import let_go
    from dbt_incremental_dd.runtime.settings import local_folder

    found = let_go(local_folder(locate(options).state_root))
    print("no session is kept" if found is None else f"process {found.keeper} ends its session when nobody uses it")
    return 0


def _print_table(rows: Sequence[dict[str, str]], columns: Sequence[str]) -> None:
    widths = {c: max([len(c), *(len(row[c]) for row in rows)]) for c in columns}
    for row in [{c: c for c in columns}, *rows]:
        print("  ".join(row[c].ljust(widths[c]) for c in columns).rstrip())


VERBS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "init": _init,
    "status": _status,
    "explain": _explain,
    "verify": _verify,
    "query": _query,
    "subscribe": _subscribe,
    "publish": _publish,
    "serve": _serve,
    "token": _token,
    "watch": _watch,
    "advance": _advance,
    "compact": _compact,
    "vacuum": _vacuum,
    "end-session": _end_session,
}
"""The function of each verb; it returns the exit status."""
