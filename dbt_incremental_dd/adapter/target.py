"""What ``target`` is in Jinja: its ``type`` is ``spark``, as the SQL of every package for this adapter is.

Packages ask for ``target.type in ('spark', 'databricks')`` where they do not dispatch. dbt has no seam for that: it
looks adapters up by the same property of the credentials, which has to stay ``differential`` there.
"""

from __future__ import annotations

from typing import Any

from dbt.adapters.differential.credentials import DifferentialCredentials
from dbt.config.profile import Profile

_of_dbt = Profile.to_target_dict


def _target(profile: Profile) -> dict[str, Any]:
    found: dict[str, Any] = _of_dbt(profile)
    if isinstance(profile.credentials, DifferentialCredentials):
        found["type"] = "spark"
    return found


def install() -> None:
    """From now on ``target.type`` is ``spark`` where the profile's type is ours; other adapters' stays as it is."""
    Profile.to_target_dict = _target
