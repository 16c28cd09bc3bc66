"""Every class of the suite is run, or left out with a reason."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import dbt.tests.adapter as suite
from dbt.tests import adapter

from tests.dbt.standard.left_out import LEFT_OUT

_HERE = "tests.dbt.standard"


def _modules(package: str, paths: list[str]) -> Iterator[str]:
    """All modules below; the suite's packages have no __init__.py."""
    for found in pkgutil.iter_modules(paths):
        if not found.ispkg:
            yield f"{package}.{found.name}"
    for path in paths:
        for folder in sorted(Path(path).iterdir()):
            if folder.is_dir() and folder.name != "__pycache__":
                yield from _modules(f"{package}.{folder.name}", [str(folder)])


def _classes(module: str) -> Iterator[type]:
    """The module's own classes that have tests; not those that only run another one for PostgreSQL."""
    for name, found in inspect.getmembers(importlib.import_module(module), inspect.isclass):
        is_run_there = name.startswith("Test") and any(b.__module__.startswith(suite.__name__) for b in found.__bases__)
        if found.__module__ == module and not is_run_there and any(member.startswith("test_") for member in dir(found)):
            yield found


def test_every_class_is_run_or_left_out() -> None:
    ours = [importlib.import_module(f"{_HERE}.{path.stem}") for path in sorted(Path(__file__).parent.glob("test_*.py"))]
    run = {b for module in ours for name, c in vars(module).items() if name.startswith("Test") for b in c.__bases__}
    missing, twice, used = [], [], set()
    for module in dict.fromkeys(_modules(adapter.__name__, list(adapter.__path__))):
        short = module.removeprefix(f"{adapter.__name__}.")
        for found in _classes(module):
            keys = {short, f"{short}:{found.__name__}"} & set(LEFT_OUT)
            used |= keys
            if found in run and f"{short}:{found.__name__}" in keys:
                twice.append(found)
            elif found not in run and not keys:
                missing.append(f"{short}:{found.__name__}")
    assert not missing and not twice
    assert not set(LEFT_OUT) - used, "there are no such classes"
    assert len(run) > 100
