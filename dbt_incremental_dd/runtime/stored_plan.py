"""A model's compiled plan, stored beside it: compiling takes 0.3 to 1.8 s, reading and checking a few milliseconds.

What is stored is data until the user's key (``plan_key``) has signed it: a plan that is missing, damaged, of other SQL,
or not signed is compiled again. Users and machines with keys of their own have a file each.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyarrow import fs as pafs

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.differential.lower import DifferentialPlan
from dbt_incremental_dd.differential.serial import dumps, loads
from dbt_incremental_dd.runtime.plan_key import PlanKey, plan_key
from dbt_incremental_dd.trace.layout import CollectionStore

_MOST = 4
"""Plan files of a model; those of keys that nobody has any more are among them."""


@dataclass(frozen=True)
class Compiled:
    """A model's plan, its output's schema, and the fingerprint of what it was made from."""

    plan: DifferentialPlan
    schema: Schema
    fingerprint: str


def load(place: CollectionStore, mark: str) -> Compiled | None:
    """The stored plan with that fingerprint; None where there is none that this user's key has signed."""
    key = plan_key()
    if not key.is_lasting:
        return None
    try:
        text = place.storage.read_small(_path(place, key))
        stored = json.loads(text or "{}")
        signed = stored["signed"]
        if not key.has_signed(_bound(place, signed), stored["signature"]):
            return None
        made = json.loads(signed)
        if made["fingerprint"] != mark:
            return None
        return Compiled(loads(made["plan"]), Schema.from_json(made["schema"]), mark)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def has_signed(place: CollectionStore, mark: str) -> bool:
    """Whether this user has compiled SQL with that fingerprint for the model."""
    return load(place, mark) is not None


def store(place: CollectionStore, compiled: Compiled) -> None:
    """Stores the plan for later processes of this user."""
    key = plan_key()
    if not key.is_lasting:
        return
    made = {"fingerprint": compiled.fingerprint, "schema": compiled.schema.to_json(), "plan": dumps(compiled.plan)}
    signed = json.dumps(made)
    text = json.dumps({"signed": signed, "signature": key.sign(_bound(place, signed))})
    _forget_others(place, key)
    place.storage.write_small(_path(place, key), text)


def _bound(place: CollectionStore, signed: str) -> str:
    """A plan is signed for one model."""
    return f"{place.name}\n{signed}"


def _path(place: CollectionStore, key: PlanKey) -> str:
    return f"collections/{place.folder}/{_name(key)}"


def _name(key: PlanKey) -> str:
    return f"plan-{key.id}.json"


def _forget_others(place: CollectionStore, key: PlanKey) -> None:
    """Removes the oldest plans of other keys, and of versions that had one name for all."""
    filesystem, folder = place.storage.filesystem(place.uri)
    found = filesystem.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
    files = [info for info in found if info.type == pafs.FileType.File and info.base_name.endswith(".json")]
    old = [info for info in files if info.base_name == "plan.json"]
    others = [info for info in files if info.base_name.startswith("plan-") and info.base_name != _name(key)]
    others.sort(key=lambda info: info.mtime_ns or 0, reverse=True)
    for info in (*old, *others[_MOST - 1 :]):
        try:
            filesystem.delete_file(info.path)
        except FileNotFoundError:  # another process has removed it
            continue
