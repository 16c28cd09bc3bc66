"""The graph of what installed Python packages need, as their own metadata has it."""

from __future__ import annotations

from importlib.metadata import Distribution, distributions

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def installed() -> tuple[dict[str, int], dict[tuple[str, str], bool]]:
    """The bytes of each package; and each need of one package for another, with whether it is optional, by an extra."""
    found: dict[str, Distribution] = {}
    for distribution in distributions():
        found.setdefault(canonicalize_name(distribution.metadata["Name"]), distribution)
    sizes = {name: _size(found[name]) for name in sorted(found)}
    needs: dict[tuple[str, str], bool] = {}
    for name in sizes:
        for requirement, optional in _requirements(found[name]):
            if requirement in found and requirement != name:
                needs[name, requirement] = needs.get((name, requirement), True) and optional
    return sizes, dict(sorted(needs.items()))


def _size(distribution: Distribution) -> int:
    return sum(file.size or 0 for file in distribution.files or ())


def _requirements(distribution: Distribution) -> list[tuple[str, bool]]:
    """Those that concern this Python and this machine."""
    result: list[tuple[str, bool]] = []
    extras = distribution.metadata.get_all("Provides-Extra") or []
    for text in distribution.requires or ():
        requirement = Requirement(text)
        name, marker = canonicalize_name(requirement.name), requirement.marker
        if marker is None or marker.evaluate({"extra": ""}):
            result.append((name, False))
        elif any(marker.evaluate({"extra": extra}) for extra in extras):
            result.append((name, True))
    return result
