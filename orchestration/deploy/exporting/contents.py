"""The resources of a deployment, computed without an account."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from orchestration.catalog.partitions import partition_of
from orchestration.deploy import other_accounts, own_role
from orchestration.deploy.account import Account, refusal
from orchestration.deploy.aliases.model import Alias
from orchestration.deploy.comparing import difference
from orchestration.deploy.composing import desired, names_of
from orchestration.deploy.events.missed import Missed
from orchestration.deploy.exporting.placeholders import ACCOUNT, REGION, Placeholders
from orchestration.deploy.monitoring.alarms import Alarm
from orchestration.deploy.monitoring.logs import LogGroup
from orchestration.deploy.permissions.policies import check_size
from orchestration.deploy.resources import Current, Desired, Role, Rule, Schedule, StateMachine
from orchestration.deploy.sources import SourceFolder
from orchestration.errors import DeployError
from orchestration.expressions import Json

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline

Resource: TypeAlias = Role | LogGroup | StateMachine | Alias | Schedule | Rule | Alarm
_OWNER: Final = re.compile(r"arn:[\w-]+:iam::(\d{12}):role/")
_REGION: Final = r"[a-z]{2,4}(?:-[a-z]+)+-\d"


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """The resources of a deployment, in the order of making; unknown values are placeholders."""

    pipeline: str
    account: str | None
    """The only account that this is for; None: any."""
    region: str | None
    """The only region that this is for; None: any of the partition."""
    resources: tuple[Resource, ...]
    code: tuple[SourceFolder, ...]
    """Folders that must be in S3 before a run: `orchestrate upload` puts them there."""
    warnings: tuple[str, ...]
    placeholders: Placeholders

    def key(self, resource: Resource) -> str:
        """Return what tells a resource from others of its type: ``companion``, ``states``.

        The state machine of the pipeline itself, its schedule and its log group have none.
        """
        if isinstance(resource, LogGroup):
            return ""
        name = resource.name.removeprefix(self.pipeline)
        region = self.region or self.placeholders.marks[REGION]
        return name.replace(f"-{region}-", "-").lstrip("-")

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of values that whoever creates the resources gives."""
        names = self.placeholders.held([[each.name, each.aspects()] for each in self.resources])
        return tuple(sorted(names - {ACCOUNT, REGION}))

    @property
    def in_lower_case(self) -> frozenset[str]:
        """The names that ARNs of SageMaker hold, where it writes lower case."""
        policies = [each.policy for each in self.resources if isinstance(each, Role)]
        arns = [arn for p in policies for each in p["Statement"] for arn in each["Resource"]]
        return self.placeholders.held([arn for arn in arns if ":sagemaker:" in arn])

    @property
    def code_uris(self) -> tuple[str, ...]:
        """The places of the code in S3."""
        return tuple(self.placeholders.readable(folder.uri) for folder in self.code)


def expected(*, lower: bool) -> str:
    """Say which values a placeholder may have."""
    return f"text without quotation marks and backslashes{', in lower case' * lower}"


def export(
    pipeline: Pipeline,
    *,
    parameters: Mapping[str, Json] | None = None,
    unrestricted: Collection[str] = (),
    role_arn: str | None = None,
    sweep_every_h: int = 1,
    account: str | None = None,
    region: str | None = None,
) -> Export:
    """Compute what :func:`orchestration.deploy.step_functions` makes, and ask nobody.

    The arguments are those of a deployment, and so are the errors. A value may hold ``${Name}``,
    which becomes a parameter of the template, and ``${AWS::AccountId}`` and ``${AWS::Region}``.
    Without ``account`` and ``region`` the template is for every account, and for every region of
    the partition of the pipeline's own; a pipeline that names its region is for that one only.
    """
    values = dict(parameters or {})
    placeholders = Placeholders.of(values.values())
    own = own_role.named(pipeline, role_arn)
    account = account or _owner(own)
    region = region or pipeline.region
    place = Account(
        id=account or placeholders.marks[ACCOUNT],
        region=region or placeholders.marks[REGION],
        partition=partition_of(region),
    )
    wanted = desired(
        pipeline,
        place,
        parameters={name: placeholders.marked(value) for name, value in values.items()},
        unrestricted=unrestricted,
        sweep_every_h=sweep_every_h,
    )
    if problems := list(_places_named(pipeline, placeholders, place, wanted.machine)):
        raise refusal(f"pipeline {pipeline.name} can't be exported for every place", problems)
    _check_sizes(wanted, placeholders)
    if own is not None:
        wanted = own_role.under(wanted, own, place)
    made = [change.subject for change in difference(wanted, Current())]
    return Export(
        pipeline=pipeline.name,
        account=account,
        region=region,
        resources=tuple(each for each in made if not isinstance(each, SourceFolder | Missed)),
        code=wanted.sources,
        warnings=tuple(
            map(
                placeholders.readable,
                (*other_accounts.warnings(wanted), *_missed(pipeline), *wanted.warnings),
            )
        ),
        placeholders=placeholders,
    )


def _missed(pipeline: Pipeline) -> Iterator[str]:
    """Yield what a schedule made by others than a deployment does not start."""
    schedule = pipeline.schedule_spec()
    if schedule is not None and schedule.catchup:
        yield (
            "EventBridge Scheduler starts nothing for times before it has the schedule; once it "
            f"is made, `orchestrate backfill` starts each run since {schedule.start} that is "
            "missing, once"
        )


def _check_sizes(wanted: Desired, placeholders: Placeholders) -> None:
    """Refuse a policy that fits with placeholders only, which are shorter."""
    longest = {ACCOUNT: "1" * 12, REGION: "ap-southeast-1"}
    for role in (wanted.role, wanted.transfer_role, wanted.batch_role):
        if role is not None:
            policy = placeholders.filled(json.dumps(role.policy, ensure_ascii=False), longest)
            check_size(json.loads(policy), f"role {placeholders.readable(role.name)}")


def _owner(role_arn: str | None) -> str | None:
    """Return the account of a role of the user's own: a state machine is in the same one."""
    if role_arn is None:
        return None
    match = _OWNER.match(role_arn)
    if match is None:
        raise DeployError(f"expected the ARN of a role, got {role_arn!r}")
    return match[1]


def _places_named(
    pipeline: Pipeline, placeholders: Placeholders, place: Account, machine: StateMachine
) -> Iterator[str]:
    """Yield roles that this deployment makes, and that the pipeline names with their place."""
    names = names_of(pipeline.name, place)
    definition = json.dumps(machine.definition, ensure_ascii=False)
    anywhere = {placeholders.marks[ACCOUNT]: r"\d{12}", placeholders.marks[REGION]: _REGION}
    for name in (names.transfer_role, names.batch_role):
        arn = re.escape(place.role_arn(str(name)))
        for mark, text in anywhere.items():
            arn = arn.replace(mark, text)
        for found in sorted(set(re.findall(rf"{arn}(?=[\"'])", definition))):
            if found != place.role_arn(str(name)):
                yield (
                    f"it names role {found.rpartition('/')[2]} of account {found.split(':')[4]}, "
                    "which a deployment makes there; export for that account and region "
                    "(--account, --region), or name the role by a parameter whose value holds "
                    "${AWS::AccountId} and ${AWS::Region}"
                )
