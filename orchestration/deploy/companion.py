"""The desired state of a pipeline's companion: a state machine, what starts it, and two roles."""

from __future__ import annotations

from collections.abc import Mapping

from orchestration.backends import companion
from orchestration.cleanup import PIPELINE, TRIAL, Leftovers, leftovers
from orchestration.deploy.account import Account
from orchestration.deploy.permissions import Statement, document
from orchestration.deploy.resources import Companion, CompanionNames, Rule, StateMachine, Target
from orchestration.deploy.starting import Maker, ends, schedule
from orchestration.graph import Workflow
from orchestration.notices import FAILURES


def names(pipeline: str, account: Account) -> CompanionNames:
    """Name the resources of a companion."""
    name = f"{pipeline}{companion.SUFFIX}"
    return CompanionNames(
        name=name,
        machine_arn=account.arn("states", f"stateMachine:{name}"),
        role=f"{pipeline}-{account.region}-companion",
        starter=f"{pipeline}-{account.region}-sweep",
    )


def desired(
    workflow: Workflow, account: Account, tags: Mapping[str, str], sweep_every_h: int
) -> Companion:
    """Compute the companion of a workflow; of one whose runs leave nothing, none of it."""
    definition = companion.render(workflow)
    if definition is None:
        return Companion()
    called = names(workflow.name, account)
    watched = account.arn("states", f"stateMachine:{workflow.name}")
    maker = Maker(account=account, tags=tags)
    policy = document(*statements(workflow, account))
    role = maker.machine(called.role, policy, called.machine_arn)
    starter = maker.starter(
        called.starter,
        "StartCompanion",
        called.machine_arn,
        {
            "events.amazonaws.com": account.arn("events", f"rule/{called.name}"),
            "scheduler.amazonaws.com": maker.schedules,
        },
    )
    every = "rate(1 hour)" if sweep_every_h == 1 else f"rate({sweep_every_h} hours)"
    return Companion(
        role=role,
        machine=StateMachine(
            name=called.name,
            arn=called.machine_arn,
            definition=definition,
            role_arn=role.arn,
            tags=tags,
        ),
        starter=starter,
        rule=Rule(
            name=called.name,
            pattern=ends(watched, FAILURES),
            targets=(
                Target(id="companion", arn=called.machine_arn, role_arn=starter.arn, input="{}"),
            ),
        ),
        # A sweep that could not be started is late; the next one does the same.
        sweep=schedule(called.name, called.machine_arn, starter, every, input={}),
    )


def statements(workflow: Workflow, account: Account) -> list[Statement]:
    """List what the companion of a workflow needs."""
    pipeline, left = workflow.name, leftovers(workflow.graph)
    executions = account.arn("states", f"execution:{pipeline}:*")
    needed = [
        Statement(
            "SeeWhatRuns",
            _set("states:ListExecutions"),
            _set(account.arn("states", f"stateMachine:{pipeline}")),
        ),
        Statement("SeeRuns", _set("states:DescribeExecution"), _set(executions)),
        *stopping(left, account),
    ]
    if left.file_systems:
        needed += _file_systems(pipeline, account)
    if left.transfers:
        needed += _transfers(pipeline, account)
    if left.copies:
        needed += _copies(pipeline, account)
    if left.trials:
        needed += _trials(pipeline, left.trials, account)
    return needed


def stopping(left: Leftovers, account: Account) -> list[Statement]:
    """List what finding and stopping the jobs of a run needs."""
    statements = []
    for jobs in left.jobs:
        actions = _set(f"sagemaker:{jobs.kind.list}")
        statements.append(Statement("FindLeftovers", actions, _set("*")))
        arns = {
            account.arn("sagemaker", f"{jobs.kind.resource}/{prefix}*") for prefix in jobs.prefixes
        }
        # SageMaker writes names in its ARNs in lower case, and IAM is case-sensitive.
        arns |= {arn.lower() for arn in arns}
        actions = _set("sagemaker:ListTags", f"sagemaker:{jobs.kind.stop}")
        statements.append(Statement("StopJobs", actions, frozenset(arns)))
    return statements


def _transfers(pipeline: str, account: Account) -> list[Statement]:
    own = (("StringEquals", f"aws:ResourceTag/{PIPELINE}", _set(pipeline)),)
    tasks = _set(account.arn("datasync", "task/*"))
    executions = _set(account.arn("datasync", "task/*/execution/*"))
    followed = _set("datasync:CancelTaskExecution", "datasync:DescribeTaskExecution")
    deleted = _set("datasync:DeleteTask", "datasync:DescribeTask")
    locations = _set(account.arn("datasync", "location/*"))
    return [
        Statement("FindLeftovers", _set("datasync:ListTasks"), _set("*")),
        Statement("ReadTransfers", _set("datasync:ListTagsForResource"), tasks),
        Statement("EndTransfers", followed, executions, own),
        Statement("DeleteTransfers", deleted, tasks, own),
        Statement("DeleteLocations", _set("datasync:DeleteLocation"), locations, own),
    ]


def _copies(pipeline: str, account: Account) -> list[Statement]:
    own = (("StringEquals", f"aws:ResourceTag/{PIPELINE}", _set(pipeline)),)
    jobs = _set(account.arn("s3", "job/*"))
    return [
        Statement("FindLeftovers", _set("s3:ListJobs"), _set("*")),
        Statement("ReadCopies", _set("s3:GetJobTagging"), jobs),
        Statement("CancelCopies", _set("s3:UpdateJobStatus"), jobs, own),
    ]


def _trials(pipeline: str, prefixes: tuple[str, ...], account: Account) -> list[Statement]:
    # SageMaker writes names in its ARNs in lower case, and IAM is case-sensitive.
    names = {f"{prefix}*" for prefix in prefixes} | {f"{prefix}*".lower() for prefix in prefixes}
    endpoints = frozenset(account.arn("sagemaker", f"endpoint/{name}") for name in names)
    configs = frozenset(account.arn("sagemaker", f"endpoint-config/{name}") for name in names)
    own = (
        ("StringEquals", f"aws:ResourceTag/{PIPELINE}", _set(pipeline)),
        ("StringLike", f"aws:ResourceTag/{TRIAL}", _set("*")),
    )
    seen = _set("sagemaker:ListEndpointConfigs")
    return [
        Statement("FindLeftovers", seen, _set("*")),
        Statement("ReadTrials", _set("sagemaker:ListTags"), configs),
        Statement("SeeTrials", _set("sagemaker:DescribeEndpoint"), endpoints),
        Statement("EndTrials", _set("sagemaker:DeleteEndpoint"), endpoints, own),
        Statement("ForgetTrials", _set("sagemaker:DeleteEndpointConfig"), configs, own),
    ]


def _file_systems(pipeline: str, account: Account) -> list[Statement]:
    own = (("StringEquals", f"aws:ResourceTag/{PIPELINE}", _set(pipeline)),)
    seen = _set("fsx:DescribeDataRepositoryTasks", "fsx:DescribeFileSystems")
    deleted = _set("fsx:DeleteFileSystem", "fsx:TagResource")
    return [
        Statement("FindLeftovers", seen, _set("*")),
        Statement("DeleteFileSystems", deleted, _set(account.arn("fsx", "file-system/*")), own),
        Statement(
            "CancelTasks",
            _set("fsx:CancelDataRepositoryTask"),
            _set(account.arn("fsx", "task/*")),
            own,
        ),
    ]


def _set(*values: str) -> frozenset[str]:
    return frozenset(values)
