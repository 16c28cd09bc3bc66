"""The runs above a model's: dbt's command, and what has started that, which the environment names.

``OPENLINEAGE_PARENT_ID`` and ``OPENLINEAGE_ROOT_PARENT_ID`` are ``namespace/job/run id``, as the macros of Airflow's
provider write them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from openlineage.client.facet_v2 import parent_run

from dbt_incremental_dd.core.errors import ConfigError

_PARENT, _ROOT = "OPENLINEAGE_PARENT_ID", "OPENLINEAGE_ROOT_PARENT_ID"


@dataclass(frozen=True)
class _Job:
    """A run of a job."""

    namespace: str
    name: str
    run_id: str


@dataclass(frozen=True)
class Parents:
    """The facets for the command's events, and for its models'."""

    of_command: parent_run.ParentRunFacet | None
    of_model: parent_run.ParentRunFacet

    @staticmethod
    def of_environment(namespace: str, job: str, run_id: str) -> Parents:
        """Those of a command that is this run of this job. A variable that is none is passed over."""
        own = _Job(namespace, job, run_id)
        found: dict[str, _Job | None] = {}
        for name in (_PARENT, _ROOT):
            with suppress(ConfigError):
                found[name] = _read(name)
        above = found.get(_PARENT)
        root = found.get(_ROOT) or above
        return Parents(None if above is None else _facet(above, root), _facet(own, root or own))


def require_parents() -> None:
    """Raises ConfigError, naming the variable, for one that is no run."""
    for name in (_PARENT, _ROOT):
        _read(name)


def _read(name: str) -> _Job | None:
    given = os.environ.get(name, "")
    if not given:
        return None
    namespace, job, run_id = ["", "", *given.rsplit("/", 2)][-3:]
    try:
        if not namespace or not job:
            raise ValueError
        return _Job(namespace, job, str(UUID(run_id)))
    except ValueError:
        raise ConfigError(f"{name} is {given!r}", "Write namespace/job/run id, the last a UUID.") from None


def _facet(parent: _Job, root: _Job | None) -> parent_run.ParentRunFacet:
    top = root or parent
    return parent_run.ParentRunFacet(
        parent_run.Run(parent.run_id),
        parent_run.Job(parent.namespace, parent.name),
        parent_run.Root(parent_run.RootRun(top.run_id), parent_run.RootJob(top.namespace, top.name)),
    )
