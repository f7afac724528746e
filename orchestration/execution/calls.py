"""A call, performed: any number of attempts may make it, and they pay once.

It creates first; where AWS says that it exists, an earlier attempt of this very run got through,
and this one goes on with what that one started.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from orchestration.errors import ExpressionError, RunError
from orchestration.execution import wording
from orchestration.execution.effects import (
    Aborted,
    Deadline,
    Ended,
    Failed,
    Follow,
    Note,
    Now,
    Outputs,
    Performance,
    Place,
    Rest,
    Resume,
    ServiceError,
    Started,
    Stop,
    Trouble,
    Verdict,
    Watch,
)
from orchestration.execution.jobs import Created, Job, Launched, Refused, job, listed
from orchestration.execution.outputs import at, checked_response, defaults, taken
from orchestration.execution.places import (
    Attempt,
    Standing,
    next_round,
    refused,
    rested,
    resumed,
    timed,
)
from orchestration.execution.sending import passes, sent
from orchestration.execution.verdicts import judged, missing, polled, unfollowed
from orchestration.expressions import Environment, evaluate
from orchestration.graph import (
    ENDS_OF_JOBS,
    JOB_FAILED,
    LATENCY,
    TIMED_OUT,
    Call,
    Fallback,
    Until,
    candidates,
)


def called(call: Call, values: Environment, attempt: Attempt, path: str) -> Performance[Outputs]:
    """Make a call and wait for what it started; returns the step's outputs.

    Raises :class:`~orchestration.errors.RunError`; where trying the whole step again may help,
    :class:`~orchestration.execution.effects.Trouble`.
    """
    try:
        if call.pages is not None:
            return (yield from listed(job(call, values), call.pages))
        begun = cast(float, (yield Now())) if call.timed else 0.0
        outputs = yield from _Calling(call, values, attempt, path).perform()
        if call.timed:
            seconds = cast(float, (yield Now())) - begun
            return {**outputs, LATENCY: round(seconds * 1000)}
        return outputs
    except RunError as error:
        if call.may_fail and error.error in ENDS_OF_JOBS:
            yield Note(f"{error.cause}; going on without it")
            return defaults({} if call.until is None else call.until.outputs, call.name)
        if call.failure is None or not call.failure.is_about(error.error):
            raise
        remedy = evaluate(call.failure.remedy, values)
        cause = wording.filled(wording.REMEDIED, cause=error.cause, remedy=remedy)
        kind = Trouble if isinstance(error, Trouble) else RunError
        raise kind(call.failure.error, cause) from error


@dataclass(frozen=True, slots=True)
class _Calling:
    call: Call
    values: Environment
    attempt: Attempt
    path: str

    def perform(self) -> Performance[Outputs]:
        kept = cast("Watch | Rest | None", (yield Resume(self.path)))
        if isinstance(kept, Watch):
            launched = Launched(kept, None)
        else:
            begun = self._begin() if kept is None else rested(kept, self.call.fallback)
            started = yield from self._launch((yield from begun))
            if not isinstance(started, Launched):
                return started
            launched = started
        while True:
            watch = launched.watch
            verdict = launched.verdict or (yield from self._follow(watch))
            if isinstance(verdict, Ended):
                return {**watch.outputs, **verdict.outputs}
            if verdict.lacking:
                place = yield from self._after_job(watch.place, verdict)
            elif self._tries_again(verdict, watch.place):
                yield Note(f"{verdict.cause}; trying again")
                place = watch.place.newer()
            elif self._starts_anew(verdict, adopted=watch.adopted):
                # A clear stops what runs, and this attempt came while it was still stopping.
                place = yield from self._begin()
            elif verdict == watch.doubt:
                raise Trouble(verdict.error, verdict.cause)
            else:
                raise RunError(verdict.error, verdict.cause)
            started = yield from self._launch(place)
            if not isinstance(started, Launched):
                return started
            launched = started

    def _follow(self, watch: Watch) -> Performance[Verdict]:
        try:
            return cast(Verdict, (yield Follow(watch)))
        except Aborted:
            yield Stop(watch)
            raise

    def _begin(self) -> Performance[Place]:
        """Find where this attempt begins: at the first request, or where an earlier one was."""
        count = len(candidates(self.call))
        fallback = self.call.fallback
        rounds = fallback is not None and fallback.waits
        if self.attempt.first or (count == 1 and not rounds):
            return (yield from timed(Place(), fallback))

        def jobs(number: int, place: int) -> Job:
            return self._job(Place(number, ("",) * place))

        moments: list[str] = []

        def look(asked: Job) -> Performance[Standing | None]:
            standing = yield from self._look(asked)
            if standing is not None and standing.created is not None:
                moments.append(standing.created)
            return standing

        place = yield from resumed(jobs, look, count, self.attempt, rounds=rounds)
        # What a person has started again has all its hours.
        since = None if self.attempt.cleared else min(moments, default=None)
        return (yield from timed(place, fallback, self.path, since))

    def _launch(self, place: Place) -> Performance[Outputs | Launched]:
        """Start or find a job, and ask for it once; the outputs where nothing is waited for."""
        while True:
            asked = self._job(place)
            created = yield from self._begun(asked)
            if isinstance(created, Refused):
                place = yield from self._after(
                    place.after(created.words, used=False, hopeful=created.hopeful)
                )
                continue
            yield Started(self.path, asked.request, created.response)
            if created.recovered or asked.call.until is None:
                return created.outputs
            watch = yield from self._watch(asked, created, place)
            verdict = yield from self._first_poll(watch)
            if isinstance(verdict, Failed) and verdict.lacking:
                place = yield from self._after_job(place, verdict)
                continue
            newer = place.newer()
            following = self._job(newer)
            if isinstance(verdict, Failed) and self._tries_again(verdict, place):
                yield Note(f"{verdict.cause}; trying again")
                place = newer
                continue
            if verdict is None or not (
                yield from self._goes_on(following, verdict, adopted=created.adopted)
            ):
                return Launched(watch, verdict)
            yield Note(f"{asked.subject} ended badly; the task was cleared since")
            place = newer

    def _first_poll(self, watch: Watch) -> Performance[Verdict | None]:
        try:
            return (yield from polled(watch))
        except Aborted:
            yield Stop(watch)
            raise

    def _after_job(self, place: Place, verdict: Failed) -> Performance[Place]:
        """Go on to the next request, a job having got no capacity."""
        label = self._job(place).label
        words = wording.filled(wording.LACKING, label=label, words=verdict.cause)
        return (yield from self._after(place.after(words, used=True, hopeful=True)))

    def _after(self, place: Place) -> Performance[Place]:
        """Go on to the next request; where none is left, to the next round."""
        if len(place.lacking) == len(candidates(self.call)):
            end = yield from self._end_of_stage()
            most = None if end is None else end - cast(float, (yield Deadline()))
            fallback = cast(Fallback, self.call.fallback)
            return (yield from next_round(self.path, fallback, place, most))
        yield Note(f"{place.lacking[-1]}; falling back")
        return place

    def _goes_on(
        self, following: Job, verdict: Ended | Failed, *, adopted: bool
    ) -> Performance[bool]:
        """Return whether a job that ended badly is followed by another, old or new."""
        if not self._starts_anew(verdict, adopted=adopted, retry=True):
            return False
        # Only a person's wish pays again: a retry that follows it goes on with what it started.
        return self.attempt.first_since_cleared or (yield from self._exists(following))

    def _tries_again(self, verdict: Failed, place: Place) -> bool:
        """Return whether a job that failed by itself is followed by another, as the user asks.

        The number in its name says how many there were, whichever attempt or worker started them.
        """
        tries = 1 if self.call.adopt is None else self.call.adopt.tries
        return verdict.repeatable and not verdict.lacking and place.number < tries

    def _starts_anew(self, verdict: Ended | Failed, *, adopted: bool, retry: bool = False) -> bool:
        """Return whether an earlier attempt's job ended badly, and a person has cleared since."""
        adopt = self.call.adopt
        renamable = adopt is not None and adopt.name_field is not None
        failed = isinstance(verdict, Failed) and (verdict.limited or verdict.error == JOB_FAILED)
        wished = self.attempt.cleared if retry else self.attempt.first_since_cleared
        return adopted and renamable and failed and wished

    def _job(self, place: Place) -> Job:
        candidate = candidates(self.call)[len(place.lacking)]
        return job(candidate, self.values).numbered(place.number)

    def _begun(self, asked: Job) -> Performance[Created | Refused]:
        """Create a job or adopt it; start none when the time of the stage is over."""
        call, end = asked.call, (yield from self._end_of_stage())
        if end is None or not call.starts_job or cast(float, (yield Deadline())) < end:
            return (yield from self._create(asked))
        if not self.attempt.first:
            # What an earlier attempt started must be stopped, so it is adopted; what cannot be
            # asked for by its name is sent again, since that finds it.
            if call.adopt is None or not _until(call).absent:
                return (yield from self._create(asked))
            if (yield from self._look(asked)) is not None:
                return Created({}, adopted=True)
        limit = wording.limit_of_stage(call)
        cause = wording.filled(wording.NOT_STARTED, subject=asked.subject, limit=limit)
        raise RunError(TIMED_OUT, cause)

    def _end_of_stage(self) -> Performance[float | None]:
        """Return the moment at which the time is over that the call has together with others."""
        within, until = self.call.within, self.call.until
        if within is None or until is None:
            return None
        since = cast(float, evaluate(within.since, self.values))
        idle = until.person is not None
        return cast(float, (yield Deadline(within.seconds, idle, since)))

    def _create(self, asked: Job) -> Performance[Created | Refused]:
        """Create a job or adopt it, unless no capacity is available."""
        call = asked.call
        yield Note(asked.subject)
        try:
            response = yield from sent(asked.request, call.retry)
        except ServiceError as error:
            return (yield from self._answered(asked, error))
        except Aborted as error:
            if error.unsure:
                yield from self._stop_if_there(asked)
            raise
        checked_response(response, asked.request.operation, asked.subject)
        return Created(taken(call.outputs, response, call.name), response)

    def _answered(self, asked: Job, error: ServiceError) -> Performance[Created | Refused]:
        """Say what an error of the call means: an answer, a lack of capacity, or the end."""
        call, code, message = asked.call, error.code, error.message
        if call.adopt is not None and call.adopt.exists.matches(code, message):
            yield Note("It exists: an earlier attempt started it, and this one goes on with it")
            return Created({}, adopted=True)
        for recovery in call.recoveries:
            if recovery.error.matches(code, message):
                return Created(dict(recovery.outputs), recovered=True)
        if call.only_asks and passes(error, call.retry):
            yield Note(f"{asked.subject}: {error}; polling on")
            return Created({})
        fallback = call.fallback
        pattern = None if fallback is None else fallback.refused(code, message)
        if fallback is None or pattern is None:
            if not asked.may_run(error):
                raise asked.failed(error) from error
            yield Note(f"{asked.subject}: {error}; asking whether it runs nevertheless")
            refusal = asked.failed(error)
            doubt = Failed(refusal.error, refusal.cause)
            return Created({}, adopted=True, doubt=doubt)
        try:
            standing = yield from self._look(asked)
        except Aborted:
            yield from self._stop_if_there(asked)
            raise
        if standing is not None:
            return Created({}, adopted=True)
        hopeful = not fallback.is_futile(code, message)
        return Refused(refused(asked, pattern, message), hopeful)

    def _stop_if_there(self, asked: Job) -> Performance[None]:
        """Ask for the end of a job that may have been created, its response having been lost."""
        until = asked.call.until
        if until is None or until.stop is None:
            return
        try:
            yield Stop((yield from self._watch(asked, Created({}), Place())))
        except ExpressionError:
            yield Note(f"{asked.subject} cannot be stopped: it is not known under which name")

    def _look(self, asked: Job) -> Performance[Standing | None]:
        """Ask for what has the job's name, ``None`` where nothing has."""
        until, fallback = _until(asked.call), asked.call.fallback
        try:
            response = yield from sent(asked.evaluated(until.poll, {}), asked.call.retry)
        except ServiceError as error:
            if missing(until, error):
                return None
            if not error.lasting or error.expired or passes(error, asked.call.retry):
                raise asked.failed(error) from error
            watch = yield from self._watch(asked, Created({}), Place())
            verdict = yield from unfollowed(watch, until, error)
            raise RunError(verdict.error, verdict.cause) from error
        created = at(response, ("CreationTime",))
        end = judged(asked.call, response, asked.subject, fallback)
        return Standing(end, created if isinstance(created, str) else None)

    def _watch(self, asked: Job, created: Created, place: Place) -> Performance[Watch]:
        until = _until(asked.call)
        idle = until.person is not None
        deadline = cast(float, (yield Deadline(until.timeout_s, idle)))
        end = yield from self._end_of_stage()
        shared = end is not None and end < deadline
        return Watch(
            path=self.path,
            subject=asked.subject,
            call=asked.call,
            poll=asked.evaluated(until.poll, created.outputs),
            stop=None if until.stop is None else asked.evaluated(until.stop, created.outputs),
            outputs=created.outputs,
            adopted=created.adopted,
            deadline=deadline if end is None else min(deadline, end),
            shared=shared,
            place=place,
            doubt=created.doubt,
        )

    def _exists(self, asked: Job) -> Performance[bool]:
        """Ask whether there is anything under the job's name."""
        try:
            yield from sent(asked.evaluated(_until(asked.call).poll, {}), asked.call.retry)
        except ServiceError:
            return False
        return True


def _until(call: Call) -> Until:
    if call.until is None:
        raise TypeError(f"{call.name} waits for nothing")
    return call.until
