"""The operations behind the kinds of steps, for those that become an ``aws_call``.

Which request each kind of step makes: https://docs.aws.amazon.com/sagemaker/latest/dg/build-and-manage-steps-types.html
(read 2026-11-23); the fields are those of the API reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Job:
    """An operation of SageMaker that makes something by a name, and its end."""

    operation: str
    named: str
    """The field of the name."""
    longest: int = 63
    """Characters of the name."""
    describe: str | None = None
    status: str = ""
    success: tuple[str, ...] = ("Completed",)
    failure: tuple[str, ...] = ("Failed", "Stopped")
    stop: str | None = None
    exists: str = "ResourceInUse"
    message: str = ""

    def call(self, name: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of the stage."""
        stage: dict[str, Any] = {
            "kind": "aws_call",
            "service": "sagemaker",
            "operation": self.operation,
            "request": {self.named: name, **request},
        }
        exists = {"code": self.exists, **({"message": self.message} if self.message else {})}
        stage["exists"] = exists
        if self.describe is not None:
            stage["poll"] = {
                "operation": self.describe,
                "status": self.status,
                "success": list(self.success),
                "failure": list(self.failure),
                "reason": "FailureReason",
                **({} if self.stop is None else {"stop": self.stop}),
            }
        return stage


def _job(noun: str, **more: Any) -> Job:
    """Return the operations of a kind of job, whose names all hold its noun."""
    return Job(
        operation=f"Create{noun}",
        named=f"{noun}Name",
        describe=f"Describe{noun}",
        status=f"{noun}Status",
        stop=f"Stop{noun}",
        **more,
    )


def _made(noun: str, **more: Any) -> Job:
    # SageMaker says of models, configurations and endpoints that they exist in these words only.
    return Job(
        operation=f"Create{noun}",
        named=f"{noun}Name",
        exists="ValidationException",
        message="already existing",
        **more,
    )


JOBS: Final = {
    "Training": _job("TrainingJob"),
    "Processing": _job("ProcessingJob"),
    "Transform": _job("TransformJob"),
    "Tuning": _job("HyperParameterTuningJob", longest=32),
    "AutoML": _job("AutoMLJob", longest=32),
    "Compilation": _job("CompilationJob", success=("COMPLETED",), failure=("FAILED", "STOPPED")),
    "Model": _made("Model"),
    "EndpointConfig": _made("EndpointConfig"),
    "Endpoint": _made(
        "Endpoint",
        describe="DescribeEndpoint",
        status="EndpointStatus",
        success=("InService",),
        failure=("Failed", "OutOfService"),
    ),
    "InferenceComponent": _made(
        "InferenceComponent",
        describe="DescribeInferenceComponent",
        status="InferenceComponentStatus",
        success=("InService",),
        failure=("Failed",),
    ),
}
"""By the kind of the step."""
POLLS: Final[Mapping[tuple[str, str], Mapping[str, Any]]] = {
    ("glue", "StartJobRun"): {
        "operation": "GetJobRun",
        "results": {"run": "JobRunId"},
        "request": {"RunId": {"ref": "run"}},
        "status": "JobRun.JobRunState",
        "success": ["SUCCEEDED"],
        "failure": ["FAILED", "STOPPED", "TIMEOUT", "ERROR", "EXPIRED"],
        "reason": "JobRun.ErrorMessage",
    },
    ("athena", "StartQueryExecution"): {
        "operation": "GetQueryExecution",
        "status": "QueryExecution.Status.State",
        "success": ["SUCCEEDED"],
        "failure": ["FAILED", "CANCELLED"],
        "reason": "QueryExecution.Status.StateChangeReason",
        "stop": "StopQueryExecution",
    },
    ("stepfunctions", "StartExecution"): {
        "operation": "DescribeExecution",
        "status": "status",
        "success": ["SUCCEEDED"],
        "failure": ["FAILED", "TIMED_OUT", "ABORTED"],
        "reason": "cause",
    },
    # https://docs.aws.amazon.com/step-functions/latest/dg/connect-batch.html
    ("batch", "SubmitJob"): {
        "operation": "DescribeJobs",
        "results": {"job": "jobId"},
        "request": {"jobs": [{"ref": "job"}]},
        "status": "jobs[0].status",
        "success": ["SUCCEEDED"],
        "failure": ["FAILED"],
        "reason": "jobs[0].statusReason",
        "stop": {
            "operation": "TerminateJob",
            "request": {"jobId": {"ref": "job"}, "reason": "The run was stopped."},
        },
    },
    ("sagemaker", "StartPipelineExecution"): {
        "operation": "DescribePipelineExecution",
        "results": {"execution": "PipelineExecutionArn"},
        "request": {"PipelineExecutionArn": {"ref": "execution"}},
        "status": "PipelineExecutionStatus",
        "success": ["Succeeded"],
        "failure": ["Failed", "Stopped"],
        "reason": "FailureReason",
        "stop": {
            "operation": "StopPipelineExecution",
            # An execution is stopped once, so that its own identifier tells it from the others;
            # a token has 32 characters at least, and 128 at most: an ARN may have more.
            "request": {
                "PipelineExecutionArn": {"ref": "execution"},
                "ClientRequestToken": {
                    "join": [
                        "orchestration-stops-this-execution-",
                        {"arn_name": {"ref": "execution"}},
                    ]
                },
            },
        },
    },
    ("codebuild", "StartBuild"): {
        "operation": "BatchGetBuilds",
        "results": {"build": "build.id"},
        "request": {"ids": [{"ref": "build"}]},
        "status": "builds[0].buildStatus",
        "success": ["SUCCEEDED"],
        "failure": ["FAILED", "FAULT", "TIMED_OUT", "STOPPED"],
        "stop": {"operation": "StopBuild", "request": {"id": {"ref": "build"}}},
    },
}
"""The ways to wait for what other services start, as ``poll`` of an ``aws_call`` says them, with
the ``results`` of the call that its requests need."""
