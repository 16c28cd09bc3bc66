"""OpenLineage's events of a run: the command's, and those of each of its models.

https://openlineage.io/spec/2-0-2/OpenLineage.json, and the facets that its client has classes of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Literal

import attr
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState, set_producer
from openlineage.client.facet_v2 import (
    JobFacet,
    RunFacet,
    error_message_run,
    input_statistics_input_dataset,
    job_type_job,
    output_statistics_output_dataset,
    processing_engine_run,
    sql_job,
)
from openlineage.client.uuid import generate_new_uuid

from dbt_incremental_dd.core.time import format_time
from dbt_incremental_dd.frontend.relations import RelationName
from dbt_incremental_dd.observe.command import Command
from dbt_incremental_dd.observe.dataset_facets import column_facet, schema_facet, stored_facets
from dbt_incremental_dd.observe.datasets import DatasetName, catalog_of, of_relation, of_source, of_uri
from dbt_incremental_dd.observe.lineage_parent import Parents
from dbt_incremental_dd.runtime.observers import ModelRun
from dbt_incremental_dd.runtime.request import ModelRequest, Outcome
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.version import version

PRODUCER = f"https://github.com/dbt-incremental-dd/dbt-incremental-dd/tree/{version}"
_NAME = "dbt-incremental-dd"


@attr.define
class DifferentialRunFacet(RunFacet):
    """How a model was brought up to date. ``phases``: seconds by phase."""

    strategy: str
    reason: str
    asOf: str  # noqa: N815 - as OpenLineage's facets are written
    heldBackBy: str  # noqa: N815
    rowsAdded: int  # noqa: N815
    rowsRemoved: int  # noqa: N815
    inputRows: int  # noqa: N815
    rowsRead: int  # noqa: N815
    bytesRead: int  # noqa: N815
    phases: dict[str, float]

    @staticmethod
    def _get_schema() -> str:
        return "urn:dbt-incremental-dd:facets:1-0-0:DifferentialRunFacet"


class Events:
    """Those of one command; asked for in the order in which they happen, by one thread. ``namespace``: of its jobs."""

    def __init__(self, command: Command, namespace: str) -> None:
        set_producer(PRODUCER)  # of facets
        self._command = command
        self._namespace = namespace
        self._catalog = catalog_of(command.spark, command.storage.root)
        self._job = f"dbt-{command.name}-{command.project}"
        self._parents = Parents.of_environment(namespace, self._job, command.id)
        self._ids: dict[int, str] = {}
        self._has_failed = False

    def command_began(self) -> RunEvent:
        """The command's START."""
        return self._of_command(RunState.START, self._command.began)

    def command_ended(self, at: float) -> RunEvent:
        """Its COMPLETE, or FAIL if a model has failed. ``at``: seconds since the epoch."""
        return self._of_command(RunState.FAIL if self._has_failed else RunState.COMPLETE, at)

    def model_began(self, key: int, model: ModelRun) -> RunEvent:
        """A model's START, with its inputs and its output by their names. ``key``: the run's, in this process."""
        self._ids[key] = str(generate_new_uuid())
        return self._of_model(model, RunState.START, self._ids[key])

    def model_ended(self, key: int, model: ModelRun) -> RunEvent:
        """A model's COMPLETE, FAIL, or ABORT if it was interrupted, with all that is known by then."""
        run_id = self._ids.pop(key, "") or str(generate_new_uuid())
        self._has_failed = self._has_failed or model.error is not None
        if model.error is None:
            return self._of_model(model, RunState.COMPLETE, run_id)
        state = RunState.FAIL if isinstance(model.error, Exception) else RunState.ABORT
        return self._of_model(model, state, run_id)

    def _of_command(self, state: RunState, at: float) -> RunEvent:
        parent = self._parents.of_command
        facets: dict[str, RunFacet] = {"processing_engine": _engine()} | ({"parent": parent} if parent else {})
        job = Job(self._namespace, self._job, {"jobType": _job_type("JOB")})
        return _event(state, at, Run(self._command.id, facets), job, [], [])

    def _of_model(self, model: ModelRun, state: RunState, run_id: str) -> RunEvent:
        request, outcome, error = model.request, model.outcome, model.error
        run: dict[str, RunFacet] = {"processing_engine": _engine(), "parent": self._parents.of_model}
        if outcome is not None:
            run["dd_run"] = _told(model, outcome)
        if error is not None:
            run["errorMessage"] = error_message_run.ErrorMessageRunFacet(str(error) or type(error).__name__, "SQL")
        job: dict[str, JobFacet] = {
            "jobType": _job_type("MODEL"),
            "sql": sql_job.SQLJobFacet(request.sql, dialect="spark"),
        }
        return _event(
            state,
            model.began if state is RunState.START else model.ended,
            Run(run_id, run),
            Job(self._namespace, f"{self._command.project}.{request.name}", job),
            list(self._inputs(model)),
            [self._output(model)],
        )

    def _inputs(self, model: ModelRun) -> Iterator[InputDataset]:
        request = model.request
        if model.inputs is None:
            for relation in _relations(request):
                yield InputDataset(*self._name_of(request, relation.key))
            return
        is_delta = model.outcome is not None and model.outcome.strategy in ("delta", "skip")
        for item in model.inputs:
            read = item.changed if is_delta else item.updates
            yield InputDataset(
                *self._name_of(request, item.key),
                facets={"schema": schema_facet(item.schema), **self._stored(request, item.key)},
                inputFacets={
                    "inputStatistics": input_statistics_input_dataset.InputStatisticsInputDatasetFacet(rowCount=read)
                },
            )

    def _output(self, model: ModelRun) -> OutputDataset:
        request = model.request
        facets: dict[str, Any] = stored_facets(of_relation(request.name, self._catalog))
        written: dict[str, Any] = {}
        if model.schema is not None:
            facets["schema"] = schema_facet(model.schema)
        if model.plan is not None and model.schema is not None and model.inputs is not None:
            names = {item.name: self._name_of(request, item.key) for item in model.inputs}
            facets["columnLineage"] = column_facet(model.plan, model.schema, names)
        if model.outcome is not None:
            rows = model.outcome.rows_added + model.outcome.rows_removed
            written["outputStatistics"] = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                rowCount=rows, size=model.outcome.bytes_written
            )
        return OutputDataset(*self._collection(request.name), facets=facets, outputFacets=written)

    def _name_of(self, request: ModelRequest, key: str) -> DatasetName:
        """The dataset of an input, by its key in the request."""
        how = request.inputs.get(key)
        if isinstance(how, SourceSpec):
            return of_source(how, self._catalog)
        return self._collection(key) if how == "model" else of_relation(key, self._catalog)

    def _stored(self, request: ModelRequest, key: str) -> dict[str, Any]:
        return stored_facets(of_relation(key, self._catalog)) if request.inputs.get(key) == "model" else {}

    def _collection(self, name: str) -> DatasetName:
        return of_uri(self._command.storage.collection(name).uri)


def _event(
    state: RunState, at: float, run: Run, job: Job, inputs: list[InputDataset], outputs: list[OutputDataset]
) -> RunEvent:
    time = datetime.fromtimestamp(at, UTC).isoformat()
    return RunEvent(
        eventType=state, eventTime=time, run=run, job=job, inputs=inputs, outputs=outputs, producer=PRODUCER
    )


def _engine() -> RunFacet:
    return processing_engine_run.ProcessingEngineRunFacet(version, name=_NAME, openlineageAdapterVersion=version)


def _job_type(kind: Literal["JOB", "MODEL"]) -> JobFacet:
    return job_type_job.JobTypeJobFacet("BATCH", "DBT", jobType=kind)


def _told(model: ModelRun, outcome: Outcome) -> DifferentialRunFacet:
    phases: dict[str, float] = defaultdict(float)
    for phase in model.profile.stretches:
        phases[phase.kind] += round(phase.seconds, 6)
    return DifferentialRunFacet(
        strategy=outcome.strategy,
        reason=outcome.why,
        asOf=format_time(outcome.as_of),
        heldBackBy=outcome.held_back_by,
        rowsAdded=outcome.rows_added,
        rowsRemoved=outcome.rows_removed,
        inputRows=outcome.input_rows,
        rowsRead=outcome.reads.rows,
        bytesRead=outcome.reads.bytes,
        phases=dict(phases),
    )


def _relations(request: ModelRequest) -> tuple[RelationName, ...]:
    """What the SQL reads; nothing if it cannot be read, of which the run's own error tells."""
    try:
        return request.relations
    except Exception:
        return ()
