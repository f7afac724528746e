"""What the operators of all calls have in common."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, cast

from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook
from airflow.providers.common.compat.sdk import AirflowException, BaseOperator
from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from orchestration.airflow import sending, watching
from orchestration.airflow.clearing import cleared, first_since_cleared
from orchestration.airflow.context import environment, evaluated, fail
from orchestration.airflow.jobs import Job
from orchestration.airflow.outputs import taken
from orchestration.airflow.sending import Request
from orchestration.airflow.timing import limit, pause
from orchestration.airflow.triggers import UntilTrigger
from orchestration.airflow.watching import Ended, Failed
from orchestration.backends.airflow.calls import decode_call
from orchestration.errors import RunError
from orchestration.expressions import Json
from orchestration.expressions.codec import decode
from orchestration.graph import JOB_FAILED, Until

if TYPE_CHECKING:
    import jinja2
    from airflow.providers.amazon.aws.operators.base_aws import AwsBaseOperator
    from airflow.sdk import Context

    _Operator = AwsBaseOperator[AwsBaseHook]
else:
    # Before the provider's class in the order of resolution; Airflow's metaclass wants an operator.
    _Operator = BaseOperator

Outputs = dict[str, Json]


@dataclass(frozen=True, slots=True)
class _Started:
    outputs: Outputs
    adopted: bool = False
    recovered: bool = False


@dataclass(frozen=True, slots=True)
class _Watch:
    """What a job that runs is polled and stopped with."""

    subject: str
    until: Until
    poll: Request
    stop: Request | None
    outputs: Outputs
    adopted: bool
    deadline: float


class CallMixin(_Operator):
    """A call that any number of attempts may make: they pay once.

    It creates first; where that says that it exists, an earlier attempt of this very run got
    through, and this one goes on with what that one started. Its request is evaluated from data: no
    text of a user ever passes a template engine.
    """

    def __init__(
        self,
        *,
        config: Mapping[str, Json],
        call: Mapping[str, Any],
        loop: Mapping[str, Any] | None = None,
        requires: Sequence[str] = (),
        deferrable: bool = True,
        **kwargs: Any,
    ) -> None:
        # The serialized DAG shows the encoded request, so that a change of it is a new version.
        super().__init__(config=config, **kwargs)
        self.encoded = config
        self.call = call
        self.loop = loop
        self.requires = tuple(requires)
        self.deferrable = deferrable
        self._clients: dict[str, Any] = {}
        self._stop: Request | None = None
        self._killed = False

    def render_template_fields(
        self, context: Context, jinja_env: jinja2.Environment | None = None
    ) -> None:
        """Evaluate the request; Airflow renders what is left (the connection's id and region)."""
        self.config: Any = {}
        super().render_template_fields(context, jinja_env)
        self.config = evaluated(context, decode(self.encoded), environment(context, self.loop))

    def execute(self, context: Context) -> Any:
        """Create or adopt, then wait; returns the step's outputs."""
        self._check_required(context)
        return self._run(context)

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None = None) -> Any:
        """Go on with what the trigger found."""
        found = event or {}
        if "outputs" in found:
            return found["outputs"]
        failed = Failed(found.get("error", "TriggerFailed"), found.get("cause", "no event"))
        if not self._starts_anew(context, failed, adopted=found.get("adopted", False)):
            fail(context, failed.error, failed.cause)
        # A clear stops what runs, and this attempt found it while it was still stopping.
        return self._run(context)

    def on_kill(self) -> None:
        """Stop what was started: the task was marked or cleared, or its worker is told to end."""
        if self._stop is None:
            self._killed = True
        else:
            self._send_stop(self._stop)

    def started(self, context: Context, job: Job) -> None:
        """Called when the job runs; a subclass leaves its link here."""

    def _run(self, context: Context) -> Outputs:
        while True:
            launched = self._launch(context)
            if isinstance(launched, dict):
                return launched
            job, started, verdict = launched
            watch = self._watch(job, started)
            if verdict is None and self.deferrable:
                self._defer(watch)
            verdict = verdict or self._wait(watch)
            if isinstance(verdict, Ended):
                return {**started.outputs, **verdict.outputs}
            if not self._starts_anew(context, verdict, adopted=started.adopted):
                fail(context, verdict.error, verdict.cause)

    def _launch(self, context: Context) -> Outputs | tuple[Job, _Started, Ended | Failed | None]:
        """Start or find the job, polled once; the outputs where there is nothing to wait for."""
        first = self._job(context)
        job, number = first, 1
        while True:
            started = self._create(context, job)
            if started.recovered or job.call.until is None:
                return started.outputs
            self.started(context, job)
            verdict = self._poll(self._watch(job, started))
            following = first.numbered(number + 1)
            if verdict is None or not self._goes_on(context, following, verdict, started.adopted):
                return job, started, verdict
            self.log.info("%s ended badly; the task was cleared since", job.subject)
            job, number = following, number + 1

    def _goes_on(
        self, context: Context, following: Job, verdict: Ended | Failed, adopted: bool
    ) -> bool:
        """Whether a job that ended badly is followed by another, old or new."""
        if not self._starts_anew(context, verdict, adopted=adopted, retry=True):
            return False
        # Only a person's wish pays again: a retry that follows it goes on with what it started.
        return first_since_cleared(context) or self._exists(following)

    def _starts_anew(
        self,
        context: Context,
        verdict: Ended | Failed,
        *,
        adopted: bool,
        retry: bool = False,
    ) -> bool:
        """Whether an earlier attempt's job ended badly and a person has cleared the task since."""
        adopt = decode_call(self.task_id, self.call, {}).adopt
        renamable = adopt is not None and adopt.name_field is not None
        failed = isinstance(verdict, Failed) and verdict.error == JOB_FAILED
        wished = cleared(context) if retry else first_since_cleared(context)
        return adopted and renamable and failed and wished

    def _job(self, context: Context) -> Job:
        call = decode_call(self.task_id, self.call, {})
        request = Request(call.operation.service, call.operation.name, self.config)
        return Job(call, request, environment(context, self.loop))

    def _create(self, context: Context, job: Job) -> _Started:
        call, request = job.call, job.request
        self.log.info("%s", job.subject)
        try:
            response = self._send(request, job)
            return _Started(taken(call.outputs, response, f"the response of {job.subject}"))
        except RunError as error:
            fail(context, error.error, error.cause)
        except (ClientError, BotoCoreError) as error:
            code, message = sending.told(error)
            if call.adopt is not None and call.adopt.exists.matches(code, message):
                self.log.info(
                    "It exists: an earlier attempt started it, and this one goes on with it"
                )
                return _Started({}, adopted=True)
            for recovery in call.recoveries:
                if recovery.error.matches(code, message):
                    return _Started(dict(recovery.outputs), recovered=True)
            self._refused(context, job, error)

    def _refused(self, context: Context, job: Job, error: ClientError | BotoCoreError) -> NoReturn:
        code, message = sending.told(error)
        cause = f"{job.subject}: {message}"
        lasting = isinstance(error, ClientError | ParamValidationError)
        if lasting and not sending.passes(error, job.call.retry):
            fail(context, code, cause)
        # Trouble outlasted this attempt's own retries; Airflow's are for that.
        raise AirflowException(f"{code}: {cause}") from error

    def _watch(self, job: Job, started: _Started) -> _Watch:
        until = job.call.until
        assert until is not None  # noqa: S101 (callers have looked)
        stop = None if until.stop is None else job.evaluated(until.stop, started.outputs)
        self._stop = stop
        if self._killed and stop is not None:
            self._killed = False
            self._send_stop(stop)
        return _Watch(
            subject=job.subject,
            until=until,
            poll=job.evaluated(until.poll, started.outputs),
            stop=stop,
            outputs=started.outputs,
            adopted=started.adopted,
            deadline=time.time() + limit(until.timeout_s),
        )

    def _exists(self, job: Job) -> bool:
        """Whether there is anything under the job's name."""
        until = job.call.until
        assert until is not None  # noqa: S101 (callers have looked)
        try:
            self._send(job.evaluated(until.poll, {}), job)
        except ClientError:
            return False
        return True

    def _poll(self, watch: _Watch) -> Ended | Failed | None:
        retry = decode_call(self.task_id, self.call, {}).retry
        try:
            response = sending.send(self._client(watch.poll.service), watch.poll, retry)
        except (ClientError, BotoCoreError) as error:
            if sending.expired(error):
                self._clients.clear()
                return None
            if sending.passes(error, retry):
                self.log.warning("%s: %s; polling on", watch.subject, error)
                return None
            return watching.judged_error(watch.until, error, watch.subject)
        return watching.judged(watch.until, response, watch.subject)

    def _wait(self, watch: _Watch) -> Ended | Failed:
        """Poll on this worker until the end."""
        while time.time() < watch.deadline:
            left = watch.deadline - time.time()
            time.sleep(max(0.0, min(pause(watch.until.interval_s), left)))
            verdict = self._poll(watch)
            if verdict is not None:
                return verdict
        if watch.stop is not None:
            self._send_stop(watch.stop)
        return watching.timed_out(watch.until, watch.subject)

    def _defer(self, watch: _Watch) -> NoReturn:
        self.defer(
            trigger=UntilTrigger(
                subject=watch.subject,
                call=self.call,
                poll=watch.poll.to_json(),
                stop=None if watch.stop is None else watch.stop.to_json(),
                outputs=watch.outputs,
                adopted=watch.adopted,
                deadline=watch.deadline,
                hook=self._connection,
            ),
            method_name="execute_complete",
        )

    @property
    def _connection(self) -> dict[str, Any]:
        return {
            "aws_conn_id": self.aws_conn_id,
            "region_name": self.region_name,
            "verify": self.verify,
            "config": self.botocore_config,
        }

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            own = service == self.hook.client_type
            hook = self.hook if own else AwsBaseHook(client_type=service, **self._connection)
            self._clients[service] = sending.client(hook)
        return self._clients[service]

    def _send(self, request: Request, job: Job) -> Json:
        return sending.send(self._client(request.service), request, job.call.retry)

    def _send_stop(self, stop: Request) -> None:
        retry = decode_call(self.task_id, self.call, {}).retry
        self.log.info("%s", stop.operation)
        try:
            sending.send(self._client(stop.service), stop, retry)
        except (ClientError, BotoCoreError) as error:
            # It may have ended meanwhile, and what called for the stop goes on in any case.
            self.log.warning("could not be stopped: %s", error)

    def _check_required(self, context: Context) -> None:
        """A clean-up runs whatever happened before it; not after a clean-up step that failed."""
        for step in self.requires:
            if (
                context["ti"].xcom_pull(task_ids=step, map_indexes=_index(context, self.loop))
                is None
            ):
                fail(context, "CleanupFailed", f"{step}, which goes before, did not end well")


def _index(context: Context, loop: Mapping[str, Any] | None) -> int | None:
    return None if loop is None else cast(int, context["ti"].map_index)
