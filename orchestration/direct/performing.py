"""One run of a workflow, from its first step or from where an earlier process died."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from orchestration.cleanup import leftovers
from orchestration.direct.clients import Clients, Session
from orchestration.direct.edge import DirectEdge
from orchestration.direct.identity import check_same, identity
from orchestration.direct.interrupting import Interrupted, Interruption, attended
from orchestration.direct.journal import journal
from orchestration.direct.notifying import publish
from orchestration.direct.outcomes import ABORTED, Outcome
from orchestration.direct.progress import Board, OnProgress, StepRun
from orchestration.errors import ExpressionError, RunError, StartError
from orchestration.execution import timing, wording
from orchestration.execution.driving import driven
from orchestration.execution.effects import Aborted, ServiceError
from orchestration.execution.leftovers.jobs import stop_running
from orchestration.execution.parameters import problems
from orchestration.execution.places import Attempt
from orchestration.execution.refusals import error_name
from orchestration.execution.scope import Scope
from orchestration.execution.steps import performed
from orchestration.expressions import Json, evaluate
from orchestration.expressions.evaluate import Values, run_token
from orchestration.graph import Guarded, Retry, Workflow, all_steps

_log = logging.getLogger("orchestration.direct")


def perform(
    workflow: Workflow,
    parameters: Mapping[str, Json],
    *,
    session: Session,
    run_id: str,
    workspace: str,
    on_progress: OnProgress | None = None,
    prepare: Callable[[], object] | None = None,
    time_scale: float | None = None,
    interruption: Interruption | None = None,
) -> Outcome:
    """Run a workflow, or go on with the run of this id whose process died; returns how it ended.

    ``workspace`` is the S3 URI under which the run keeps its journal; ``prepare`` is called before
    the first step; ``interruption`` is one that several runs share. A run that has succeeded is
    not run again. One that has failed is: jobs that finished are adopted, and those that failed are
    followed by new ones. Raises :class:`~orchestration.errors.StartError` where the run id stands
    for another run, and :class:`Interrupted` where the user interrupted it.
    """
    if any(isinstance(step, Guarded) and step.swept for step in all_steps(workflow.graph)):
        raise StartError(wording.filled(wording.UNSWEPT, driver="in a direct run"))
    refusal = refused(workflow, parameters, run_id)
    if refusal is not None:
        return refusal
    token = run_token(f"{workflow.name}/{run_id}")
    edge = DirectEdge(
        clients=Clients(session),
        journal=journal(workspace, token),
        board=Board(on_progress),
        interruption=interruption or Interruption(),
        time_scale=timing.scale() if time_scale is None else time_scale,
    )
    values = _with_defaults(workflow, parameters)
    return _Run(workflow, values, run_id, token, edge, prepare).attended()


def refused(workflow: Workflow, parameters: Mapping[str, Json], run_id: str) -> Outcome | None:
    """Return the end of a run whose parameters are wrong; ``None`` where they are right."""
    wrong = problems(workflow.parameters, _with_defaults(workflow, parameters))
    if not wrong:
        return None
    return _failed(workflow, run_id, wording.INVALID_INPUT, wording.SEPARATOR.join(wrong))


def _with_defaults(workflow: Workflow, parameters: Mapping[str, Json]) -> dict[str, Json]:
    defaults = {s.name: s.default for s in workflow.parameters if s.default is not None}
    # A null is a value that is not given: its default counts.
    values = {n: v for n, v in parameters.items() if v is not None or n not in defaults}
    return {**defaults, **values}


@dataclass(frozen=True)
class _Run:
    workflow: Workflow
    values: Mapping[str, Json]
    run_id: str
    token: str
    edge: DirectEdge
    prepare: Callable[[], object] | None

    def attended(self) -> Outcome:
        """Perform it, and take interruptions meanwhile."""
        interruption = self.edge.interruption
        outcome = attended(self._outcome, interruption, self._left)
        if outcome.error == ABORTED and interruption.asked.is_set():
            raise Interrupted(str(outcome.cause))
        return outcome

    def _outcome(self) -> Outcome:
        ended = self._opened()
        if ended is not None:
            return ended
        if self.prepare is not None:
            self.prepare()
        outcome = self._performed()
        kept = self._kept(outcome)
        if kept == outcome:
            # Otherwise another process has ended the run, and told.
            publish(self.workflow, outcome, self.edge)
        return kept

    def _opened(self) -> Outcome | None:
        """Open the journal; returns the outcome where there is nothing to do, or no way to."""
        run = identity(self.workflow, self.run_id, self.values)
        while True:
            kept = self.edge.journal
            try:
                check_same(run, self.edge.apart(kept.opened(run)))
                ended = self.edge.apart(kept.ending())
            except ServiceError as error:
                cause = (
                    f"the journal s3://{kept.bucket}/{kept.prefix} of run {self.run_id!r} cannot "
                    f"be read and written: {error}"
                )
                if not error.lasting:
                    raise StartError(cause) from error
                return _failed(self.workflow, self.run_id, error_name("s3", error), cause)
            outcome = None if ended is None else Outcome.from_json(ended)
            if outcome is None or outcome.state == "succeeded":
                return outcome
            _log.info("run %r failed at attempt %d; this is the next", self.run_id, kept.attempt)
            self.edge.journal = kept.following()

    def _performed(self) -> Outcome:
        journal = self.edge.journal
        again = journal.attempt > 1
        attempt = Attempt(
            first=not (journal.resumed or again),
            cleared=again,
            first_since_cleared=again and not journal.resumed,
        )
        try:
            driven(performed(self.workflow.graph, self._scope, attempt), self.edge)
            outputs = {n: evaluate(tree, self._scope) for n, tree in self.workflow.outputs.items()}
        except (Aborted, RunError, ExpressionError) as error:
            if journal.resumed:
                self._stop_leftovers()
            return self._failed_by(error)
        return Outcome(
            workflow=self.workflow.name,
            run_id=self.run_id,
            state="succeeded",
            outputs=outputs,
            steps=self.edge.board.steps(),
        )

    def _stop_leftovers(self) -> None:
        """Stop the jobs that an earlier process began and this one has not reached."""
        jobs, edge = leftovers(self.workflow.graph).jobs, self.edge
        try:
            edge.stopped += edge.apart(stop_running(jobs, self.token, Retry()))
        except ServiceError as error:
            _log.warning("jobs of run %r may still run: %s", self.run_id, error)

    def _failed_by(self, error: Aborted | RunError | ExpressionError) -> Outcome:
        if isinstance(error, Aborted):
            return self._ended(ABORTED, self._stopped())
        if isinstance(error, RunError):
            return self._ended(error.error, error.cause)
        return self._ended(wording.EXPRESSION_ERROR, str(error))

    @cached_property
    def _scope(self) -> Scope:
        return Scope(Values({}, self.values, self.token, number=self.edge.journal.attempt))

    def _ended(self, error: str, cause: str) -> Outcome:
        steps = self.edge.board.steps()
        return _failed(self.workflow, self.run_id, error, cause, steps)

    def _kept(self, outcome: Outcome) -> Outcome:
        """Keep the outcome; returns the one that counts, which another process may have kept."""
        try:
            kept = self.edge.apart(self.edge.journal.ended(outcome.to_json()))
        except ServiceError as error:
            _log.warning("the outcome of run %r could not be kept: %s", self.run_id, error)
            return outcome
        return Outcome.from_json(kept)

    def _stopped(self) -> str:
        """Say what an interruption came to."""
        stopped = f"stopped {', '.join(self.edge.stopped)}" if self.edge.stopped else "no job ran"
        left = self._left_behind()
        cleaned = f"; may still exist: {', '.join(left)}" if left else ", and clean-ups have run"
        return f"run {self.run_id!r} of {self.workflow.name} was interrupted: {stopped}{cleaned}"

    def _left(self) -> str:
        """Say what a second interruption leaves."""
        left = ", ".join(self._left_behind()) or "nothing that is known"
        return (
            f"left run {self.run_id!r} of {self.workflow.name} at once; what may still run or "
            f"exist: {left}. To go on with it, start it again under this run id"
        )

    def _left_behind(self) -> list[str]:
        """Return the jobs that were not stopped, and what was acquired and not released."""
        state = self.edge.board.state
        guards = (step for step in all_steps(self.workflow.graph) if isinstance(step, Guarded))
        kept = [
            f"what {guard.acquire.name} made"
            for guard in guards
            if state(guard.acquire.name) == "succeeded"
            and any(state(step.name) != "succeeded" for step in guard.cleanup.steps)
        ]
        return [*self.edge.running(), *kept]


def _failed(
    workflow: Workflow, run_id: str, error: str, cause: str, steps: tuple[StepRun, ...] = ()
) -> Outcome:
    return Outcome(
        workflow=workflow.name,
        run_id=run_id,
        state="failed",
        error=error,
        cause=cause,
        steps=steps,
    )
