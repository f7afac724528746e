"""Tuning jobs: the search goes on until its limits, its criteria or a person end it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, now
from orchestration.local.sagemaker.jobs.lifecycle import Job
from orchestration.local.sagemaker.outcomes import JobFailed, JobStopped
from orchestration.local.sagemaker.tuning.children import Child, best, objective, training_request
from orchestration.local.sagemaker.tuning.choosing import SIMULATED, chosen

_POLL_S = 0.05
_ATTEMPTS = 5
"""Training jobs after which a tuning job gives up, if none of them has given the objective."""
_COUNTERS = ("Completed", "InProgress", "RetryableError", "NonRetryableError", "Stopped")
_OBJECTIVES = ("Succeeded", "Pending", "Failed")


class TuningJob(Job):
    """A tuning job."""

    kind = "HyperParameterTuning"
    arn_word = "hyper-parameter-tuning-job"

    def __init__(
        self, account: Account, request: JsonObject, launch: Callable[[JsonObject], Job]
    ) -> None:
        super().__init__(account, request, request["TrainingJobDefinition"]["RoleArn"])
        self._launch = launch
        self._config = request["HyperParameterTuningJobConfig"]
        self._objective = objective(request)
        self._limits = self._config["ResourceLimits"]
        self.children: list[Child] = []

    def run(self) -> None:
        """Start training jobs until the search is over, and judge what they gave."""
        began = time.monotonic()
        try:
            self._search(began)
        finally:
            self._stop_children()
        # Assumed: its limit completes a tuning job, whatever its training jobs gave.
        if self.best is None and not self._is_out_of_time(began):
            raise JobFailed(self._reason)

    def _search(self, began: float) -> None:
        for values in chosen(self._config, self.name):
            self._heed()
            while len(self._running) >= self._parallel and self._goes_on(began):
                self._heed(_POLL_S)
            if not self._goes_on(began):
                break
            request = training_request(self.request, self.arn, len(self.children) + 1, values)
            child = Child(self._launch(request), values, self._objective["MetricName"])
            self.children.append(child)
        while self._running and self._goes_on(began):
            self._heed(_POLL_S)

    def _goes_on(self, began: float) -> bool:
        return not (self._is_hopeless or self._is_good_enough or self._is_out_of_time(began))

    def _heed(self, seconds: float = 0) -> None:
        """Wait, and end at once if somebody asks the job to stop."""
        if self.stop_requested.wait(seconds):
            raise JobStopped

    def logs(self) -> str:
        """Return what is simulated in another way, and the training jobs so far."""
        lines = []
        if self._config["Strategy"] in SIMULATED:
            lines.append(f"{self._config['Strategy']} search is simulated by random draws")
        if self._config.get("TrainingJobEarlyStoppingType") == "Auto":
            lines.append("early stopping is not simulated: every training job runs to its end")
        lines += [
            f"{child.job.name} {child.job.status} {child.values} {child.value}"
            for child in self.children
        ]
        return "".join(f"{line}\n" for line in lines)

    def describe(self) -> JsonObject:
        """Return the members that only tuning jobs have."""
        counters = Counter(child.counter for child in self.children)
        objectives = Counter(child.objective_status for child in self.children)
        leader = self.best
        return {
            "TrainingJobStatusCounters": {name: counters[name] for name in _COUNTERS},
            "ObjectiveStatusCounters": {name: objectives[name] for name in _OBJECTIVES},
            "BestTrainingJob": None if leader is None else leader.summary(self._objective["Type"]),
            "ConsumedResources": {
                "RuntimeInSeconds": round(((self.ended or now()) - self.created).total_seconds())
            },
        }

    def summaries(self) -> list[JsonObject]:
        """Return all training jobs as tuning jobs describe them."""
        return [child.summary(self._objective["Type"]) for child in list(self.children)]

    @property
    def best(self) -> Child | None:
        """The training job with the best value of the objective so far."""
        return best(list(self.children), self._objective["Type"])

    @property
    def _parallel(self) -> int:
        return int(self._limits["MaxParallelTrainingJobs"])

    @property
    def _running(self) -> list[Child]:
        return [child for child in self.children if child.runs]

    @property
    def _is_hopeless(self) -> bool:
        ended = [child for child in self.children if not child.runs]
        return len(ended) >= _ATTEMPTS and all(child.value is None for child in ended)

    @property
    def _is_good_enough(self) -> bool:
        criteria = self._config.get("TuningJobCompletionCriteria", {})
        leader, target = self.best, criteria.get("TargetObjectiveMetricValue")
        if leader is None or leader.value is None:
            return False
        sign = 1 if self._objective["Type"] == "Maximize" else -1
        if target is not None and sign * leader.value >= sign * target:
            return True
        most = criteria.get("BestObjectiveNotImproving", {}).get(
            "MaxNumberOfTrainingJobsNotImproving"
        )
        return most is not None and self._without_improvement(sign) >= most

    def _without_improvement(self, sign: int) -> int:
        """Return how many training jobs since the best one have improved it by less than 1 %."""
        count, highest = 0, None
        for value in (child.value for child in self.children):
            if value is None:
                continue
            if highest is None or sign * (value - highest) >= abs(highest) / 100:
                count, highest = 0, value
            else:
                count += 1
        return count

    def _is_out_of_time(self, began: float) -> bool:
        seconds = self._limits.get("MaxRuntimeInSeconds")
        return seconds is not None and time.monotonic() - began > self.account.clock.limit(seconds)

    def _stop_children(self) -> None:
        for child in self._running:
            child.job.stop()
        while self._running:
            time.sleep(_POLL_S)

    @property
    def _reason(self) -> str:
        """Return why a tuning job without a best training job failed; wordings as people quote."""
        completed = sum(child.job.status == "Completed" for child in self.children)
        if completed:
            return (
                f"No objective metrics found after running {completed} training jobs. Please "
                "ensure that the custom algorithm is emitting the objective metric as defined by "
                "the regular expression provided."
            )
        return (
            "All training jobs failed. Please take a look at the training jobs failures to get "
            "more details."
        )
