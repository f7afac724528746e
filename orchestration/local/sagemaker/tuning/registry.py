"""The tuning jobs of an account, and the operations on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from typing_extensions import override

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, Operation
from orchestration.local.sagemaker.checks.training import check_training_request
from orchestration.local.sagemaker.jobs.lifecycle import Job
from orchestration.local.sagemaker.jobs.mounts import Mounts
from orchestration.local.sagemaker.jobs.registry import Jobs
from orchestration.local.sagemaker.tags import Tags
from orchestration.local.sagemaker.tuning.checks import check_parents, check_tuning_request
from orchestration.local.sagemaker.tuning.job import TuningJob

_VALUE = "FinalHyperParameterTuningJobObjectiveMetric"


class TuningJobs(Jobs):
    """The tuning jobs, and the operations on them."""

    def __init__(self, account: Account, mounts: Mounts, training: Jobs, tags: Tags) -> None:
        super().__init__("HyperParameterTuning", self._new, tags)
        self._account = account
        self._mounts = mounts
        self._training = training

    def _new(self, request: JsonObject) -> TuningJob:
        check_tuning_request(request, self._check_training)
        check_parents(request, self.find)
        return TuningJob(self._account, request, self._training.begin)

    def _check_training(self, request: JsonObject) -> None:
        check_training_request(self._account, request, self._mounts.subnets)

    @override
    def operations(self) -> dict[str, Operation]:
        kind = "ListTrainingJobsForHyperParameterTuningJob"
        return {**super().operations(), kind: self._list_training}

    @override
    def _summary(self, job: Job) -> JsonObject:
        config = job.request["HyperParameterTuningJobConfig"]
        described = job.describe()
        counters = {key: described[key] for key in described if key.endswith("Counters")}
        strategy = {"Strategy": config["Strategy"], "ResourceLimits": config["ResourceLimits"]}
        return {**super()._summary(job), **strategy, **counters}

    def _list_training(self, request: JsonObject) -> JsonObject:
        wanted = request.get("StatusEquals")
        summaries = [
            each
            for each in cast(TuningJob, self._get(request)).summaries()
            if wanted in (None, each["TrainingJobStatus"])
        ]
        by = request.get("SortBy", "Name")
        if by == "FinalObjectiveMetricValue":
            summaries = [each for each in summaries if _VALUE in each]
        summaries.sort(key=_KEYS[by], reverse=request.get("SortOrder") == "Descending")
        start = int(request.get("NextToken", 0))
        end = start + request.get("MaxResults", 10)
        rest = {"NextToken": str(end)} if end < len(summaries) else {}
        return {"TrainingJobSummaries": summaries[start:end], **rest}


_KEYS: dict[str, Callable[[JsonObject], Any]] = {
    "Name": lambda each: each["TrainingJobName"],
    "CreationTime": lambda each: each["CreationTime"],
    "Status": lambda each: each["TrainingJobStatus"],
    "FinalObjectiveMetricValue": lambda each: each[_VALUE]["Value"],
}
