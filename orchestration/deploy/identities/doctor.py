"""Whoever runs the doctor: reading what the requests of a pipeline name, and changing nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from orchestration.deploy.account import Account
from orchestration.deploy.identities.identity import Identity, identity
from orchestration.deploy.identities.places import IMAGE
from orchestration.deploy.identities.touched import touched
from orchestration.deploy.permissions import Runs, Statement
from orchestration.deploy.permissions.patterns import ANY, Known, iam, listings, pattern, s3
from orchestration.deploy.permissions.requests import calls, keys, roles
from orchestration.deploy.resources import GROUP, Desired, Names
from orchestration.expressions import Tree
from orchestration.graph import Operation, Workflow, all_steps

_MACHINES: Final = frozenset(
    {
        "CreateEndpointConfig",
        "CreateHyperParameterTuningJob",
        "CreateProcessingJob",
        "CreateTrainingJob",
        "CreateTransformJob",
    }
)
_NETWORK: Final = (
    "DescribeInstanceTypeOfferings",
    "DescribeRouteTables",
    "DescribeSecurityGroups",
    "DescribeSubnets",
    "DescribeVpcEndpoints",
)
_BUCKET: Final = (
    "s3:GetBucketLocation",
    "s3:GetBucketPolicy",
    "s3:GetEncryptionConfiguration",
    "s3:ListBucket",
)
_KEY: Final = ("kms:DescribeKey", "kms:GetKeyPolicy", "kms:ListGrants")


def doctor(
    desired: Desired,
    names: Names,
    workflow: Workflow,
    account: Account,
    runs: Runs,
    *,
    own_role: str | None,
) -> Identity:
    """Return the least identity that can run every check of the doctor.

    ``desired`` is what a deployment would make without ``own_role``, which is the user's own role
    of the state machine, if there is one.
    """
    graph = workflow.graph
    steps = {step.name: step for step in all_steps(graph)}
    needed = list(_names(desired, account, names))
    if own_role is not None:
        needed += (each.by("permissions") for each in _of_role(own_role))
    for parameters in runs:
        known = Known(parameters=parameters, listings=listings(graph), steps=steps)
        for step, operation, inside in calls(graph, known):
            # What names something that exists is a request that makes something of it.
            every = (
                *_of_assumed(pattern(operation.assumes, inside), account),
                *_of_request(operation, inside, account),
                *_buckets(operation, inside, account),
            )
            needed += (each.by(step) for each in every)
    return identity("doctor", "whoever runs orchestrate doctor", needed)


def _names(desired: Desired, account: Account, names: Names) -> Iterator[Statement]:
    companion = names.companion
    machines = (names.machine_arn, companion.machine_arn)
    yield _on("SeeMachines", "states:DescribeStateMachine", *machines).by("names")
    yield _on("SeeMachines", "states:ListTagsForResource", *machines).by("names")
    made = (desired.schedule_role, desired.trigger_role, desired.transfer_role, desired.batch_role)
    roles = [names.role, companion.role, companion.starter, *(role.name for role in made if role)]
    yield _on("SeeRoles", "iam:GetRole", *map(account.role_arn, roles)).by("names")
    schedules = [companion.name, *([names.schedule] if desired.schedule else [])]
    timed = [account.arn("scheduler", f"schedule/{GROUP}/{name}") for name in schedules]
    yield _on("SeeSchedules", "scheduler:GetSchedule", *timed).by("names")
    rules = [companion.name, *([names.trigger] if desired.trigger else [])]
    for action in ("DescribeRule", "ListTargetsByRule"):
        arns = (account.arn("events", f"rule/{name}") for name in rules)
        yield _on("SeeRules", f"events:{action}", *arns).by("names")
    if desired.log_group is not None:
        group = desired.log_group.arn
        yield _on("FindLogGroups", "logs:DescribeLogGroups", "*").by("names")
        yield _on("SeeLogGroups", "logs:ListTagsForResource", group, f"{group}:*").by("names")
    for alarm in desired.alarms:
        for action in ("DescribeAlarms", "ListTagsForResource"):
            yield _on("SeeAlarms", f"cloudwatch:{action}", alarm.arn).by("names")


def _of_request(operation: Operation, known: Known, account: Account) -> Iterator[Statement]:
    request = operation.request
    if operation.name in _MACHINES:
        yield _on("SeeQuotas", "servicequotas:ListAWSDefaultServiceQuotas", "*")
        yield _on("SeeQuotas", "servicequotas:ListServiceQuotas", "*")
    if operation.name in ("CreateEndpoint", "UpdateEndpoint"):
        name = iam(pattern(request["EndpointName"], known)).lower()
        for action in ("DescribeEndpoint", "ListTags"):
            arn = account.arn("sagemaker", f"endpoint/{name}")
            yield _on("SeeEndpoints", f"sagemaker:{action}", arn)
    for role in roles(request):
        yield from _of_role(iam(pattern(role, known)))
    for key in keys(request):
        for action in _KEY:
            yield _on("SeeKeys", action, _key(pattern(key, known), account))
        yield _on("SimulatePolicies", "iam:SimulateCustomPolicy", "*")
    if operation.service == "sagemaker":
        for touch in touched(request):
            yield from _of_touch(touch.use, touch.value, known, account)
    elif "SubnetIds" in request:
        yield from _network()


def _of_assumed(role: str, account: Account) -> Iterator[Statement]:
    """Yield what seeing a role takes that is assumed; another account's can't be seen."""
    if ANY not in role and role.split(":")[4:5] == [account.id]:
        yield _on("SeeRoles", "iam:GetRole", iam(role))


def _of_role(arn: str) -> Iterator[Statement]:
    yield _on("SeeRoles", "iam:GetRole", arn)
    yield _on("SimulateRoles", "iam:SimulatePrincipalPolicy", arn)


def _of_touch(use: str, value: Tree, known: Known, account: Account) -> Iterator[Statement]:
    if use == "network":
        yield from _network()
    elif use == "files":
        fields = value if isinstance(value, Mapping) else {}
        if fields.get("FileSystemType") == "EFS":
            name = iam(pattern(fields.get("FileSystemId"), known))
            arn = account.arn("elasticfilesystem", f"file-system/{name}")
            yield _on("SeeFileSystems", "elasticfilesystem:DescribeMountTargets", arn)
        else:
            yield _on("SeeFileSystems", "fsx:DescribeFileSystems", "*")
    elif use == "image":
        image = pattern(value, known)
        match = IMAGE.fullmatch(image)
        if match is None and ANY not in image:
            return
        registry = f"arn:{account.partition}:ecr:"
        arn = account.arn("ecr", "repository/*")
        if match is not None:
            arn = f"{registry}{match['region']}:{match['account']}:repository/{iam(match['name'])}"
        yield _on("SeeImages", "ecr:BatchGetImage", arn)
        yield _on("SeeImages", "ecr:GetDownloadUrlForLayer", arn)
        yield _on("SeeMachineTypes", "ec2:DescribeInstanceTypes", "*")


def _network() -> Iterator[Statement]:
    return (_on("SeeNetwork", f"ec2:{each}", "*") for each in _NETWORK)


def _buckets(operation: Operation, known: Known, account: Account) -> Iterator[Statement]:
    for uri in _uris(operation, operation.request, known):
        bucket = s3(uri)[0]
        if ANY not in bucket:
            arn = f"arn:{account.partition}:s3:::{iam(bucket)}"
            yield Statement("SeeBuckets", frozenset(_BUCKET), frozenset([arn]))
            # Nothing but the bucket itself tells the key that it encrypts with.
            of_any = frozenset([account.arn("kms", "key/*")])
            yield Statement("SeeKeysOfBuckets", frozenset(_KEY), of_any)
            yield _on("SimulatePolicies", "iam:SimulateCustomPolicy", "*")


def _uris(operation: Operation, tree: Tree, known: Known) -> Iterator[str]:
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            if name == "Bucket" and operation.service == "s3":
                yield f"s3://{pattern(value, known)}/"
            else:
                yield from _uris(operation, value, known)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from _uris(operation, value, known)
    else:
        text = pattern(tree, known).removeprefix('"')
        if text.startswith("s3://"):
            yield text


def _key(name: str, account: Account) -> str:
    """Return the ARN of a key; an alias may be of any."""
    if name.startswith("arn:") and ":alias/" not in name:
        return iam(name)
    return account.arn("kms", "key/*" if "alias/" in name else f"key/{iam(name)}")


def _on(sid: str, action: str, *resources: str) -> Statement:
    return Statement(sid, frozenset([action]), frozenset(resources))
