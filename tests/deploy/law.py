"""A pipeline that is deployed and run under the derived policies, and what everyone did then."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchestration import Pipeline
from orchestration.backends import companion
from orchestration.cleanup import leftovers
from orchestration.deploy import Deployment, step_functions
from orchestration.deploy.identities import Identity, identities
from orchestration.local import Access, EmbeddedAws, RecordedCall
from orchestration.local.iam.needs import needs
from orchestration.local.policies.evaluation import Need, allows
from orchestration.local.run.executions import role
from orchestration.local.run.preparation import prepare
from tests.conformance.pipelines import PARAMETERS
from tests.conformance.sites import wait
from tests.deploy.permissions.possible import needs_of, possible, superfluous
from tests.deploy.pipelines import ACCOUNT

DEPLOYER: Final = f"arn:aws:iam::{ACCOUNT.id}:role/deployer"
OBJECTS: Final = ("set/train/one.csv", "set/train/two.csv", "set/holdout/held.csv")
_ALL: Final = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}],
}
_SERVICES: Final = ("BatchOperations", "batchoperations.s3"), ("DataSync", "datasync")


@dataclass(frozen=True)
class Law:
    """A run under derived policies."""

    pipeline: Pipeline
    identities: tuple[Identity, ...]
    deployment: Deployment
    accesses: tuple[Access, ...]
    of_containers: tuple[RecordedCall, ...]
    """Calls from inside jobs, which the embedded AWS lets the account make."""

    def refused(self) -> list[Access]:
        """Return what the policies did not allow."""
        own = {DEPLOYER, *(each.name for each in self.identities)}
        refused = (each for each in self.accesses if not each.allowed and each.role in own)
        beyond = (
            Access(each.name, need.action, need.resource, need.context, allowed=False)
            for each in self.identities
            if each.who == "jobs"
            for need in self._inside()
            if not allows([each.policy], need)
        )
        return [*refused, *beyond]

    def superfluous(self) -> dict[str, list[str]]:
        """Return the statements without which everyone could do as much, by identity."""
        return {
            f"{each.who} {each.name.rpartition('/')[2]}": superfluous(
                each.policy, [*self.needs(each)]
            )
            for each in self.identities
            if each.who != "doctor"  # Whose own law is in tests/preflight.
        }

    def needs(self, identity: Identity) -> Iterator[Need]:
        """Yield what an identity did, and what it can do in other runs."""
        name = DEPLOYER if identity.who == "deployer" else identity.name
        machine = next(each.name for each in self.identities if each.who == "machine")
        own = machine if identity.who == "airflow" else name
        yield from (each.need for each in self.accesses if each.role == own)
        if identity.who == "jobs":
            yield from self._inside()
        if identity.who in ("machine", "airflow"):
            yield from possible(self.pipeline)
        if identity.who == "airflow":
            yield from self._logs()
        if identity.who in ("airflow", "companion"):
            for _, _, need in cleaning(self.pipeline):
                yield need

    def _inside(self) -> Iterator[Need]:
        for call in self.of_containers:
            yield from needs_of(self.pipeline, call)

    def _logs(self) -> Iterator[Need]:
        """Yield the reading of the logs that the jobs of the run wrote."""
        for each in self.accesses:
            if each.action == "logs:PutLogEvents":
                group = each.resource.partition(":log-stream:")[0]
                yield Need("logs:DescribeLogStreams", f"{group}:log-stream:")
                yield Need("logs:GetLogEvents", each.resource)


def account(aws: EmbeddedAws) -> None:
    """Provide what the pipelines name."""
    s3 = aws.client("s3")
    for bucket in ("incoming", PARAMETERS["bucket"]):
        s3.create_bucket(Bucket=bucket)
    for key in OBJECTS:
        s3.put_object(Bucket="incoming", Key=key, Body=b"x")
    lines = "".join(f"incoming,{key},null\n" for key in OBJECTS)
    s3.put_object(Bucket=PARAMETERS["bucket"], Key="lists/manifest.csv", Body=lines.encode())
    for name, service in _SERVICES:
        role(aws, name, f"{service}.amazonaws.com")
        allow(aws, name, _ALL)  # Somebody's own.
    aws.provide(
        roles=[PARAMETERS["role"], DEPLOYER],
        subnets=["subnet-0123abcd"],
        security_groups=["sg-0123abcd"],
    )


def deploy(pipeline: Pipeline, aws: EmbeddedAws) -> tuple[Deployment, tuple[Identity, ...]]:
    """Deploy as the deployer, with the policies of the jobs on their role."""
    every = identities(pipeline, ACCOUNT, parameters=PARAMETERS)
    for each in every:
        if each.who in ("deployer", "jobs"):
            arn = DEPLOYER if each.who == "deployer" else each.name
            allow(aws, arn.rpartition("/")[2], each.policy)
    session = aws.acting_as(DEPLOYER)
    return step_functions(pipeline, session=session, parameters=PARAMETERS), every


def allow(aws: EmbeddedAws, name: str, policy: Mapping[str, Any], kind: str = "least") -> None:
    """Replace the policy of a role."""
    aws.client("iam").put_role_policy(
        RoleName=name, PolicyName=kind, PolicyDocument=json.dumps(policy)
    )


def run(deployment: Deployment, aws: EmbeddedAws, name: str) -> dict[str, Any]:
    """Run a deployed pipeline to its end."""
    states = aws.client("stepfunctions")
    started = states.start_execution(
        stateMachineArn=deployment.state_machine_arn, name=name, input=json.dumps(PARAMETERS)
    )
    return ended(aws, started["executionArn"])


def ended(aws: EmbeddedAws, execution: str) -> dict[str, Any]:
    """Return an execution once it has ended."""
    states = aws.client("stepfunctions")
    wait(lambda: states.describe_execution(executionArn=execution)["status"] != "RUNNING")
    return dict(states.describe_execution(executionArn=execution))


def obeyed(pipeline: Pipeline, aws: EmbeddedAws) -> Law:
    """Deploy a pipeline, run it, and let the sweep look for leftovers."""
    account(aws)
    deployment, every = deploy(pipeline, aws)
    prepare(aws, pipeline, pipeline.lower(), PARAMETERS, {})
    found = run(deployment, aws, "law")
    assert found["status"] == "SUCCEEDED", (found.get("error"), found.get("cause"))
    states = aws.client("stepfunctions")
    swept = deployment.desired.companion.machine
    aws.pass_time(hours=1.1)
    for machine in filter(None, (swept and swept.arn, deployment.state_machine_arn)):
        for each in states.list_executions(stateMachineArn=machine)["executions"]:
            found = ended(aws, each["executionArn"])
            assert found["status"] == "SUCCEEDED", (found.get("error"), found.get("cause"))
    inside = [each for each in aws.calls(include_jobs=True) if each.origin == "job"]
    return Law(pipeline, every, deployment, tuple(aws.accesses()), tuple(inside))


def cleaning(pipeline: Pipeline) -> Iterator[tuple[str, str, Need]]:
    """Yield each call that a companion may make, by service and operation, with what it needs."""
    left = leftovers(pipeline.lower().graph)
    tags = [{"Key": "orchestration:keep-for-h", "Value": "0"}]
    arn = "arn:aws:{}:us-east-1:123456789012:{}".format
    machine = arn("states", f"stateMachine:{pipeline.name}")
    execution = machine.replace("stateMachine", "execution") + ":x"
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("stepfunctions", "ListExecutions", {"stateMachineArn": machine}),
        ("stepfunctions", "DescribeExecution", {"executionArn": execution}),
    ]
    for jobs in left.jobs:
        asked.append(("sagemaker", jobs.kind.list, {}))
        for prefix in jobs.prefixes:
            name, resource = f"{prefix}x", arn("sagemaker", f"{jobs.kind.resource}/{prefix}x")
            asked.append(("sagemaker", "ListTags", {"ResourceArn": resource.lower()}))
            asked.append(("sagemaker", jobs.kind.stop, {jobs.kind.name: name}))
    if left.file_systems:
        system = arn("fsx", "file-system/fs-1")
        asked += [("fsx", f"Describe{each}s", {}) for each in ("FileSystem", "DataRepositoryTask")]
        asked.append(("fsx", "CancelDataRepositoryTask", {"TaskId": "task-1"}))
        asked.append(("fsx", "DeleteFileSystem", {"FileSystemId": "fs-1"}))
        asked.append(("fsx", "TagResource", {"ResourceARN": system, "Tags": tags}))
    if left.transfers:
        task = {"TaskArn": arn("datasync", "task/task-1")}
        begun = {"TaskExecutionArn": f"{task['TaskArn']}/execution/exec-1"}
        asked += [("datasync", name, task) for name in ("ListTasks", "DescribeTask", "DeleteTask")]
        asked += [("datasync", f"{name}TaskExecution", begun) for name in ("Describe", "Cancel")]
        asked.append(("datasync", "ListTagsForResource", {"ResourceArn": task["TaskArn"]}))
        location = {"LocationArn": arn("datasync", "location/loc-1")}
        asked.append(("datasync", "DeleteLocation", location))
    if left.copies:
        asked += [("s3control", n, {}) for n in ("ListJobs", "GetJobTagging", "UpdateJobStatus")]
    for prefix in left.trials:
        named, config = {"EndpointName": f"{prefix}x"}, {"EndpointConfigName": f"{prefix}x"}
        resource = arn("sagemaker", f"endpoint-config/{prefix}x").lower()
        asked.append(("sagemaker", "ListEndpointConfigs", {}))
        asked.append(("sagemaker", "ListTags", {"ResourceArn": resource}))
        asked += [("sagemaker", f"{verb}Endpoint", named) for verb in ("Describe", "Delete")]
        asked.append(("sagemaker", "DeleteEndpointConfig", config))
    own = {
        "aws:ResourceTag/orchestration:pipeline": pipeline.name,
        "aws:ResourceTag/orchestration:trial": "endpoint",
    }
    for service, operation, request in asked:
        for need in needs(service, operation, request, ACCOUNT.id, ACCOUNT.region):
            yield service, operation, Need(need.action, need.resource, {**own, **need.context})


def calls_of_companion(pipeline: Pipeline) -> set[str]:
    """Return the integrations of a companion's definition: ``fsx:deleteFileSystem``."""
    text = json.dumps(companion.render(pipeline.lower()))
    found = text.split('"arn:aws:states:::aws-sdk:')[1:]
    return {each.partition('"')[0].replace("sfn:", "stepfunctions:") for each in found}
