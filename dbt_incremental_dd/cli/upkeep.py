"""Verbs that keep what is stored in order: ``verify``, ``compact``, ``vacuum`` and ``end-session``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from dbt_incremental_dd.cli.opened import collection, database, session
from dbt_incremental_dd.cli.printed import print_no_collections
from dbt_incremental_dd.cli.profile import locate, project_folder
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.time import format_time, parse_duration
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.progress import size_text


def verify(options: argparse.Namespace) -> int:
    """Compares models with Spark's batch answers, or files with their checksums; 1 if something is wrong."""
    from dbt_incremental_dd.runtime.verify import verify

    names = [collection(options, name).name for name in options.model] or None
    if not database(options).collections():
        return print_no_collections(options)
    if options.files:
        return _verify_files(database(options).storage, names)
    with session(options) as opened:
        found = verify(opened.spark, database(options).storage, names)
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


def compact(options: argparse.Namespace) -> int:
    """Merges files, and forgets history."""
    from dbt_incremental_dd.runtime.compact import compact

    names = [collection(options, name).name for name in options.model] or None
    if not database(options).collections():
        return print_no_collections(options)
    retain = None if options.retain_history is None else parse_duration(options.retain_history)
    with session(options) as opened:
        for line in compact(opened, database(options).storage, names, retain):
            print(line)
    return 0


def vacuum(options: argparse.Namespace) -> int:
    """Removes files that nobody needs."""
    from dbt_incremental_dd.runtime.vacuum import vacuum

    names = [collection(options, name).name for name in options.model] or None
    storage = database(options).storage
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


def end_session(options: argparse.Namespace) -> int:
    """Ends the session that is kept for later commands."""
    from dbt_incremental_dd.runtime.kept_session import let_go
    from dbt_incremental_dd.runtime.settings import local_folder

    found = let_go(local_folder(locate(options).state_root))
    print("no session is kept" if found is None else f"process {found.keeper} ends its session when nobody uses it")
    return 0
