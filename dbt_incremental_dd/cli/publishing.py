"""What is published: as a command says it, or by the exposures of a watched project, each in a thread of its own."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread

from dbt_incremental_dd.api import Database
from dbt_incremental_dd.cli.graph import published
from dbt_incremental_dd.cli.profile import project_of
from dbt_incremental_dd.core.errors import ConfigError, DifferentialError
from dbt_incremental_dd.core.time import format_time, now
from dbt_incremental_dd.sinks.exposures import Publication, publications
from dbt_incremental_dd.sinks.following import options_of
from dbt_incremental_dd.sinks.registry import SINKS
from dbt_incremental_dd.sinks.wanted import Wanted
from dbt_incremental_dd.watch.project import Project
from dbt_incremental_dd.watch.watcher import WatchedProject

_RETRY_SECONDS = 15.0
"""After which one that has failed begins again."""


def wanted_by(options: argparse.Namespace) -> tuple[str, str, Wanted]:
    """What the command publishes: a collection's name, the kind of sink, and its settings. Raises ConfigError."""
    if options.exposure is None:
        if options.model is None:
            raise ConfigError("publish takes a model", "Name it, or an exposure: --exposure NAME.")
        kind = next(kind for kind in SINKS if getattr(options, kind) is not None)
        target, key, given = getattr(options, kind), tuple(options.key), options_of(options.option)
        return options.model, kind, Wanted(target, key, given, options.form, options.rejected, options.format)
    known = {one.exposure: one for one in published(project_of(options)[0])}
    found = known.get(options.exposure)
    if found is None:
        names = ", ".join(sorted(known)) or "none"
        raise ConfigError(
            f"no exposure called {options.exposure} names a sink", f"Those that do: {names}. Run dbt parse after edits."
        )
    return found.collection, found.kind, found.wanted


@contextmanager
def publishing(watched: WatchedProject, database: Callable[[], Database]) -> Iterator[None]:
    """While it lasts, what the project's exposures name is published."""
    publishers = Publishers(database, watched.report)

    def parsed(project: Project) -> None:
        publishers.follow(publications(*project.exposures(), project.folder))

    watched.parsed = parsed
    try:
        yield
    finally:
        publishers.close()


class Publishers:
    """Those of one project. ``report`` hears of each that begins, and of what fails."""

    def __init__(self, database: Callable[[], Database], report: Callable[[str], None]) -> None:
        self._database = database
        self._report = report
        self._running: dict[Publication, tuple[Thread, Event]] = {}

    def follow(self, publications: Sequence[Publication]) -> None:
        """These are published from now on, and no others."""
        gone = [one for one in self._running if one not in publications]
        self._end(gone)
        for one in publications:
            if one not in self._running:
                ended = Event()
                thread = Thread(target=self._publish, args=(one, ended), name=f"publish {one.exposure}", daemon=True)
                self._running[one] = thread, ended
                self._report(f"{format_time(now())}  exposure {one.exposure}: publishing {one.collection}")
                thread.start()

    def close(self) -> None:
        """None is published any more; what is under way is completed."""
        self._end(list(self._running))

    def _end(self, publications: Sequence[Publication]) -> None:
        for one in publications:
            self._running[one][1].set()
        for one in publications:
            self._running.pop(one)[0].join()

    def _publish(self, one: Publication, ended: Event) -> None:
        while not ended.is_set():
            try:
                SINKS[one.kind](self._database()[one.collection], one.wanted, ended=ended)
            except DifferentialError as error:
                self._report(f"{format_time(now())}  exposure {one.exposure} FAILED  {error}")
                ended.wait(_RETRY_SECONDS)
