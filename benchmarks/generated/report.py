"""What a run of the suite tells at its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Results = Mapping[str, Mapping[str, Any]]


def report(found: Results) -> None:
    """A line for each query, the sums, and what should be looked at."""
    print("\nquery shape            rows  changed    first  compile    delta    batch  ratio")
    for name, one in found.items():
        print(f"{name:<5} {one['shape']:<14} {_figures(one)}  {', '.join(sorted(set(one['strategies'])))}")
    timed = {name: one for name, one in found.items() if "delta" in one}
    delta, batch = (sum(one[key] for one in timed.values()) for key in ("delta", "batch"))
    print(f"{len(timed)} queries: by delta {delta:.1f} s, by Spark's batch answers {batch:.1f} s")
    _tell_plain(timed)
    _tell("above twice the batch answer", (name for name, one in timed.items() if one["delta"] > 2 * one["batch"]))
    _tell("recomputed as quicker", (name for name, one in found.items() if "recompute" in one["strategies"]))
    _tell("without a run after the first load", (name for name in found if name not in timed))
    _tell("empty at first", (name for name, one in found.items() if not one.get("rows")))
    _tell("refused", (f"{name} ({one['refused']})" for name, one in found.items() if "refused" in one))
    print(f"compiled in {sum(one.get('compile', 0) for one in found.values()):.1f} s")
    fallen = {name: one["fallbacks"] for name, one in found.items() if one.get("fallbacks")}
    kept = [name for name, one in found.items() if one.get("fallbacks") == []]
    print(f"without fallback: {len(kept)} of {len(found)}")
    for name, reasons in fallen.items():
        print(f"  {name}: {'; '.join(reasons)}")


def _figures(one: Mapping[str, Any]) -> str:
    if "delta" not in one:
        return "failed"
    ratio = one["delta"] / one["batch"]
    return (
        f"{one.get('rows', 0):>8} {one['changed']:>8.0f} {one.get('first', 0):>6.2f} s {one.get('compile', 0):>6.2f} s "
        f"{one['delta']:>6.2f} s {one['batch']:>6.2f} s {ratio:>6.2f}"
    )


def _tell_plain(timed: Results) -> None:
    plain = {name: one["plain"] for name, one in timed.items() if "plain" in one}
    if plain:
        print(f"over plain Parquet files Spark takes {sum(plain.values()):.1f} s")
        _tell("above twice that", (name for name, seconds in plain.items() if timed[name]["delta"] > 2 * seconds))


def _tell(what: str, names: Iterable[str]) -> None:
    listed = list(names)
    print(f"{what}: {len(listed)}{': ' if listed else ''}{', '.join(listed)}")
