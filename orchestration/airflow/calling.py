"""What the operators of all calls have in common."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, cast

from airflow.providers.common.compat.sdk import AirflowException, BaseOperator
from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from orchestration.airflow import sending, watching
from orchestration.airflow.clearing import cleared, first_since_cleared
from orchestration.airflow.context import environment, evaluated, fail
from orchestration.airflow.fallbacks import Place, Standing, refused, resumed
from orchestration.airflow.following import Following, Watch
from orchestration.airflow.jobs import Job
from orchestration.airflow.outputs import taken
from orchestration.airflow.sending import Request
from orchestration.airflow.timing import limit
from orchestration.airflow.triggers import UntilTrigger
from orchestration.airflow.watching import Ended, Failed
from orchestration.backends.airflow.calls import decode_call
from orchestration.errors import RunError
from orchestration.expressions import Json
from orchestration.expressions.codec import decode
from orchestration.graph import JOB_FAILED, Call, candidates

if TYPE_CHECKING:
    import jinja2
    from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook
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
class _Launched:
    """A job that was started or found, and polled once."""

    job: Job
    started: _Started
    verdict: Ended | Failed | None
    place: Place


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
        self._own: Any = {}
        self.call = call
        self.loop = loop
        self.requires = tuple(requires)
        self.deferrable = deferrable
        self._stop: Request | None = None
        self._killed = False
        self._told_to_end = False

    def render_template_fields(
        self, context: Context, jinja_env: jinja2.Environment | None = None
    ) -> None:
        """Evaluate the request; Airflow renders what is left (the connection's id and region)."""
        self.config: Any = {}
        super().render_template_fields(context, jinja_env)
        self.config = evaluated(context, decode(self.encoded), environment(context, self.loop))
        self._own = self.config

    def execute(self, context: Context) -> Any:
        """Create or adopt, then wait; returns the step's outputs."""
        self._check_required(context)
        return self._run(context, self._begin(context))

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None = None) -> Any:
        """Go on with what the trigger found."""
        found = event or {}
        place = Place.from_json(found.get("place") or {})
        job = self._job(context, place)
        if "outputs" in found:
            self.config = job.request.parameters
            return found["outputs"]
        failed = Failed(found.get("error", "TriggerFailed"), found.get("cause", "no event"))
        if found.get("lacking"):
            return self._run(context, self._after(context, place, f"{job.label}: {failed.cause}"))
        if not self._starts_anew(context, failed, adopted=found.get("adopted", False)):
            fail(context, failed.error, failed.cause)
        # A clear stops what runs, and this attempt found it while it was still stopping.
        return self._run(context, self._begin(context))

    def on_kill(self) -> None:
        """Stop what was started: the task was marked or cleared, or its worker is told to end."""
        self._told_to_end = True
        if self._stop is None:
            self._killed = True
        else:
            self._following.stop(self._stop)

    def started(self, context: Context, job: Job) -> None:
        """Called when the job runs; a subclass leaves its link here."""

    def _begin(self, context: Context) -> Place:
        """Where this attempt begins: at the first request, or where an earlier one has got to."""
        count = len(candidates(self._call))
        if count == 1 or context["ti"].try_number == 1:
            return Place()

        def job(number: int, place: int) -> Job:
            return self._job(context, Place(number, ("",) * place))

        return resumed(
            job,
            lambda found: self._look(context, found),
            count,
            cleared=cleared(context),
            first=first_since_cleared(context),
        )

    def _run(self, context: Context, place: Place) -> Outputs:
        while True:
            launched = self._launch(context, place)
            if isinstance(launched, dict):
                return launched
            job, started, place = launched.job, launched.started, launched.place
            watch = self._watch(job, started)
            if launched.verdict is None and self.deferrable:
                self._defer(watch, place)
            verdict = launched.verdict or self._following.wait(watch)
            if isinstance(verdict, Ended):
                return {**started.outputs, **verdict.outputs}
            if verdict.lacking:
                place = self._after(context, place, f"{job.label}: {verdict.cause}")
            elif self._starts_anew(context, verdict, adopted=started.adopted):
                place = self._begin(context)
            else:
                fail(context, verdict.error, verdict.cause)

    def _launch(self, context: Context, place: Place) -> Outputs | _Launched:
        """Start or find a job, polled once; the outputs where there is nothing to wait for."""
        while True:
            job = self._job(context, place)
            started = self._create(context, job)
            if isinstance(started, str):
                place = self._after(context, place, started)
                continue
            self.config = job.request.parameters
            if started.recovered or job.call.until is None:
                return started.outputs
            self.started(context, job)
            verdict = self._following.poll(self._watch(job, started))
            if isinstance(verdict, Failed) and verdict.lacking:
                place = self._after(context, place, f"{job.label}: {verdict.cause}")
                continue
            newer = Place(place.number + 1)
            following = self._job(context, newer)
            if verdict is None or not self._goes_on(context, following, verdict, started.adopted):
                return _Launched(job, started, verdict, place)
            self.log.info("%s ended badly; the task was cleared since", job.subject)
            place = newer

    def _after(self, context: Context, place: Place, words: str) -> Place:
        """The place of the next request; the task fails for good where none is left."""
        following = place.after(words)
        if len(following.lacking) == len(candidates(self._call)):
            failed = following.exhausted()
            fail(context, failed.error, failed.cause)
        # What is killed from here on has nothing to stop but what comes next.
        self._stop = None
        if self._told_to_end:
            raise AirflowException(f"{words}; the task was told to end, and asks for nothing else")
        self.log.info("%s; falling back", words)
        return following

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
        adopt = self._call.adopt
        renamable = adopt is not None and adopt.name_field is not None
        failed = isinstance(verdict, Failed) and verdict.error == JOB_FAILED
        wished = cleared(context) if retry else first_since_cleared(context)
        return adopted and renamable and failed and wished

    @cached_property
    def _call(self) -> Call:
        """The call, whose own request is evaluated apart from it."""
        return decode_call(self.task_id, self.call, {})

    @cached_property
    def _following(self) -> Following:
        return Following(self, self._call.retry)

    def _job(self, context: Context, place: Place) -> Job:
        call = candidates(self._call)[len(place.lacking)]
        values, operation = environment(context, self.loop), call.operation
        parameters = self._own
        if place.lacking:
            parameters = evaluated(context, operation.request, values)
        request = Request(operation.service, operation.name, parameters)
        return Job(call, request, values).numbered(place.number)

    def _create(self, context: Context, job: Job) -> _Started | str:
        """Create a job or adopt it; in words what it met, where that is want of capacity."""
        call, request = job.call, job.request
        self.log.info("%s", job.subject)
        try:
            response = self._following.send(request)
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
            pattern = None if call.fallback is None else call.fallback.refused(code, message)
            if pattern is None:
                self._refused(context, job, error)
            if self._look(context, job) is not None:
                return _Started({}, adopted=True)
            return refused(job, pattern, message)

    def _look(self, context: Context, job: Job) -> Standing | None:
        """What has the job's name, ``None`` where nothing has."""
        until, fallback = job.call.until, job.call.fallback
        assert until is not None and fallback is not None  # noqa: S101, PT018 (callers have looked)
        try:
            response = self._following.send(job.evaluated(until.poll, {}))
        except (ClientError, BotoCoreError) as error:
            if any(pattern.matches(*sending.told(error)) for pattern in fallback.absent):
                return None
            self._refused(context, job, error)
        return Standing(watching.judged(until, response, job.subject, fallback))

    def _refused(self, context: Context, job: Job, error: ClientError | BotoCoreError) -> NoReturn:
        code, message = sending.told(error)
        cause = f"{job.subject}: {message}"
        lasting = isinstance(error, ClientError | ParamValidationError)
        if lasting and not sending.passes(error, job.call.retry):
            fail(context, code, cause)
        # Trouble outlasted this attempt's own retries; Airflow's are for that.
        raise AirflowException(f"{code}: {cause}") from error

    def _watch(self, job: Job, started: _Started) -> Watch:
        until = job.call.until
        assert until is not None  # noqa: S101 (callers have looked)
        stop = None if until.stop is None else job.evaluated(until.stop, started.outputs)
        self._stop = stop
        if self._killed and stop is not None:
            self._killed = False
            self._following.stop(stop)
        return Watch(
            subject=job.subject,
            until=until,
            fallback=job.call.fallback,
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
            self._following.send(job.evaluated(until.poll, {}))
        except ClientError:
            return False
        return True

    def _defer(self, watch: Watch, place: Place) -> NoReturn:
        self.defer(
            trigger=UntilTrigger(
                subject=watch.subject,
                call=self.call,
                poll=watch.poll.to_json(),
                stop=None if watch.stop is None else watch.stop.to_json(),
                outputs=watch.outputs,
                adopted=watch.adopted,
                deadline=watch.deadline,
                hook=self._following.connection,
                place=place.to_json(),
            ),
            method_name="execute_complete",
        )

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
