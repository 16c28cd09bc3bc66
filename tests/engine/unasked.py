"""Steps of a world in a process without a session, as if it had none."""

from __future__ import annotations

from benchmarks.asked import ListeningSession
from tests.oracle import World


def step(world: World) -> set[str]:
    """Runs and checks all models. Returns those that asked Spark."""
    session, asked = ListeningSession(world.spark), set[str]()

    def check(name: str) -> None:
        if session.asked:
            asked.add(name)
            session.asked.clear()
        world.check(name)

    failures = world.step_and_check_each(check, session=session, fallback="error")
    assert not failures, "\n\n".join(failures)
    return asked
