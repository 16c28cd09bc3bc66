"""A round of models that notes which of them ask Spark for anything."""

from __future__ import annotations

from typing import Any

from benchmarks.asked import ListeningSession
from tests.oracle import World


def checked(world: World, session: ListeningSession | None, **options: Any) -> tuple[list[str], dict[str, list[str]]]:
    """What went wrong in one run and check of each model, as ``World.step_and_check_each`` tells it, and by model who
    has asked; nobody without a session."""
    asked: dict[str, list[str]] = {}

    def check(name: str) -> None:
        if session is not None and session.asked:
            asked[name] = list(session.asked)
            session.asked.clear()
        world.check(name)

    return world.step_and_check_each(check, threads=3, session=session, **options), asked
