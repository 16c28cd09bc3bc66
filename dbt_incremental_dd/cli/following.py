"""Verbs that stay: ``watch``, ``serve`` and ``publish``."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys

from dbt_incremental_dd.cli.opened import collection, database
from dbt_incremental_dd.cli.printed import print_line
from dbt_incremental_dd.cli.profile import locate, project_of
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.standard_webhooks import SECRET
from dbt_incremental_dd.core.time import parse_duration


def watch(options: argparse.Namespace) -> int:
    """Runs what new data concerns, until it is interrupted."""
    import threading

    from dbt_incremental_dd.cli.publishing import publishing
    from dbt_incremental_dd.runtime.run_log.log import written_aside
    from dbt_incremental_dd.runtime.session import require_startable
    from dbt_incremental_dd.watch import watcher
    from dbt_incremental_dd.watch.alerts import Alerts
    from dbt_incremental_dd.watch.project import Project

    require_startable(locate(options).settings)
    every, compaction = (_seconds(text) for text in (options.every, options.compact_every))
    arguments = ["--target", options.target] if options.target else []
    folder, profiles = project_of(options)
    project = Project(folder, profiles, arguments, options.select, options.exclude)
    secret = os.environ.get(SECRET, "")
    watched = watcher.WatchedProject(
        project,
        print_line,
        watcher.Intervals(every, compaction),
        Alerts.of(options.on_missed_lag, options.on_missed_lag_webhook, secret),
    )
    print(f"Watching the sources of {folder}; the first run may take a minute. Ctrl-C ends it.", file=sys.stderr)
    nobody = contextlib.nullcontext()
    published = publishing(watched, lambda: database(options)) if options.publish else nobody
    with published, written_aside(), contextlib.suppress(KeyboardInterrupt):
        watcher.watch([watched], threading.Event())
    return 0


def serve(options: argparse.Namespace) -> int:
    """Serves collections over HTTP and the Postgres protocol, until it is interrupted."""
    from dbt_incremental_dd.serve import server
    from dbt_incremental_dd.untrusted.limits import Limits, parse_memory

    if (options.tls_cert is None) != (options.tls_key is None):
        raise ConfigError("TLS takes a certificate and its key", "Set --tls-cert and --tls-key.")
    listening = server.ServerOptions(
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
        server.serve(database(options), listening, print_line)
    return 0


def publish(options: argparse.Namespace) -> int:
    """Writes a collection's changes to a sink, until it is interrupted; or counts those that were rejected, or sends
    them again."""
    from dbt_incremental_dd.cli.publishing import wanted_by
    from dbt_incremental_dd.cli.rejected import list_rejected, resend_rejected
    from dbt_incremental_dd.sinks.registry import SINKS

    if options.list_rejected:
        return list_rejected(options)
    if options.resend:
        return resend_rejected(options)
    name, kind, wanted = wanted_by(options)
    with contextlib.suppress(KeyboardInterrupt):
        SINKS[kind](collection(options, name), wanted, once=options.once)
    return 0


def _seconds(text: str) -> float:
    return 0.0 if text == "0" else parse_duration(text) / 1000
