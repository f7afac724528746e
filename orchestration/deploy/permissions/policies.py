"""The permissions of a state machine's role: those that its own steps need, and nothing else.

An operation's own are those of its row in :mod:`orchestration.deploy.permissions.operations`, else
those in AWS's reference; a step that neither knows is an
:class:`~orchestration.errors.UnsupportedError`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from orchestration.catalog.partitions import via_service
from orchestration.deploy.account import Account, refusal
from orchestration.deploy.permissions import derived
from orchestration.deploy.permissions.assuming import assumptions
from orchestration.deploy.permissions.operations import (
    DECRYPTED,
    KEYS,
    OPERATIONS,
    PASSED,
    SYNCHRONOUS,
    USED_BY_ROLES,
)
from orchestration.deploy.permissions.overlapping import overlaps
from orchestration.deploy.permissions.patterns import ANY, Known, iam, listings, pattern
from orchestration.deploy.permissions.requests import calls, keys, roles
from orchestration.deploy.permissions.statements import Condition, Grant, Statement, document
from orchestration.errors import Problem, UnsupportedError
from orchestration.expressions import Json
from orchestration.graph import (
    Operation,
    Permission,
    Workflow,
    all_steps,
)

Runs: TypeAlias = Sequence[Mapping[str, Json]]
"""The parameters of each kind of run that the policy allows; ``None``: any value."""

_FIELD = re.compile(r"\{(\w+)\}")
_KEY_ARN = re.compile(r"arn:[\w-]+:kms:([\w-]+):([0-9]+):(?:key|alias)/.+")
_THROUGH = "kms:ViaService"
_ADD_ROW = "add them to deploy/permissions/operations.py"
_OWN_ROLE = (
    "say what the stage needs in its `permissions`, or let its kind say so: "
    "Fragment(permissions=...)"
)
_MOST_CHARACTERS = 10_240
"""The limit for all inline policies of a role, not counting blanks.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"""


def policy(
    workflow: Workflow,
    account: Account,
    runs: Runs,
    *,
    synchronous: frozenset[str] = frozenset(),
    more: Sequence[Statement] = (),
) -> dict[str, Any]:
    """Build the policy of the role that runs a workflow, in IAM's form.

    ``synchronous`` are the operations that the definition waits for by ``.sync``, and ``more`` is
    what the state machine itself needs. The keys that buckets are encrypted with are unknown here;
    their own policies must let the role use them.
    """
    written = document(*statements(workflow, account, runs, synchronous=synchronous), *more)
    check_size(written, "the state machine's role")
    return written


def statements(
    workflow: Workflow,
    account: Account,
    runs: Runs,
    *,
    synchronous: frozenset[str] = frozenset(),
) -> list[Statement]:
    """List what the steps of a workflow need, each statement with its steps, not merged."""
    missing: set[str] = set()
    needed = [
        statement
        for parameters in runs
        for statement in _statements(workflow, account, parameters, synchronous, missing)
    ]
    if missing:
        raise refusal(
            "the role's permissions depend on missing values",
            (f"parameter {name!r} has no value" for name in sorted(missing)),
        )
    return needed


def needed(workflow: Workflow, account: Account) -> frozenset[str]:
    """List the parameters that a narrow policy depends on."""
    missing: set[str] = set()
    for _ in _statements(workflow, account, {}, frozenset(), missing):
        pass
    return frozenset(missing)


def synchronous(definition: Mapping[str, Any]) -> frozenset[str]:
    """List the SageMaker operations a definition waits for by ``.sync``: ``createTrainingJob``."""
    operations = set()
    for state in _states(definition):
        resource = str(state.get("Resource", ""))
        if resource.endswith(".sync"):
            operations.add(resource.rpartition(":")[2].removesuffix(".sync"))
    unknown = operations - SYNCHRONOUS.keys()
    if unknown:
        raise UnsupportedError(
            f"the permissions of {name}.sync are unknown; {_ADD_ROW}" for name in sorted(unknown)
        )
    return frozenset(operations)


def _states(machine: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for state in machine["States"].values():
        yield state
        for branch in state.get("Branches", ()):
            yield from _states(branch)
        if "ItemProcessor" in state:
            yield from _states(state["ItemProcessor"])


def _statements(
    workflow: Workflow,
    account: Account,
    parameters: Mapping[str, Json],
    waited: frozenset[str],
    missing: set[str],
) -> Iterator[Statement]:
    place = {**account.place, "pipeline": workflow.name}
    known = Known(
        parameters=parameters,
        listings=listings(workflow.graph),
        steps={step.name: step for step in all_steps(workflow.graph)},
        sagemaker="arn:{partition}:sagemaker:{region}:{account}".format_map(place),
        missing=missing,
    )
    _check_rows(workflow, known)
    sent = list(calls(workflow.graph, known))
    yield from assumptions([each for each in sent if each[1].assumes is not None], place)
    for step, operation, inside in sent:
        if operation.assumes is None:
            for statement in of_operation(operation, inside, place, waited):
                yield statement.by(step)
    yield from overlaps(workflow, account)
    for stage, permissions in workflow.permissions.items():
        for permission in permissions:
            yield _declared(stage, permission, known, place).by(stage)


def of_operation(
    operation: Operation,
    known: Known,
    place: Mapping[str, str],
    waited: frozenset[str] = frozenset(),
) -> Iterator[Statement]:
    """Yield what whoever sends an operation's request needs."""
    for grant in _grants(operation, waited):
        yield _filled(grant, {**place, **_fields(operation, known)})
    yield from _passed(operation, known, place)


def _declared(
    stage: str, permission: Permission, known: Known, place: Mapping[str, str]
) -> Statement:
    """Return what a stage itself says that it needs."""
    resources: set[str] = set()
    for tree in permission.resources:
        text = pattern(tree, known)
        for name in ("partition", "region", "account"):
            text = text.replace(f"{{{name}}}", place[name])
        # Its own wildcards stay wildcards.
        resources |= _cases(iam(text.replace("*", ANY)))
    return Statement(
        sid="".join(part.title() for part in stage.split("_")),
        actions=frozenset(permission.actions),
        resources=frozenset(resources),
    )


def _check_rows(workflow: Workflow, known: Known) -> None:
    declared = {
        action
        for permissions in workflow.permissions.values()
        for permission in permissions
        for action in permission.actions
    }
    problems = [
        Problem(step, problem)
        for step, operation, _ in calls(workflow.graph, known)
        for problem in _row_problems(operation, declared)
    ]
    if problems:
        raise UnsupportedError(problems)


def _rows(operation: Operation) -> tuple[Grant, ...]:
    own = OPERATIONS.get((operation.service, operation.name))
    return derived.grants(operation) if own is None else own


def _row_problems(operation: Operation, declared: Collection[str]) -> Iterator[str]:
    name = f"{operation.service}:{operation.name}"
    rows = _rows(operation)
    known = rows or (operation.service, operation.name) in OPERATIONS
    if not known and not any(action.endswith(f":{operation.name}") for action in declared):
        yield f"AWS's reference of permissions does not have {name}; {_OWN_ROLE}"
    served = KEYS.keys() | USED_BY_ROLES
    if operation.service not in served and list(keys(operation.request)):
        yield f"what {name} needs of a KMS key is unknown; {_OWN_ROLE}"
    if _passes_unnamed(operation) and derived.PASSING not in declared:
        yield (
            f"{name} may pass a role that its request does not name; say which in the stage: "
            f"`permissions: [{{actions: [{derived.PASSING}], resources: [ARN of the role]}}]`"
        )
    asked = [row for row in rows if row.applies(operation.request)]
    for field in sorted({field for row in asked for field in row.fields()}):
        if field not in operation.request:
            yield f"{name} without {field} would need wider permissions than the role may have"


def _passes_unnamed(operation: Operation) -> bool:
    is_derived = (operation.service, operation.name) not in OPERATIONS
    return is_derived and not list(roles(operation.request)) and derived.passes_role(operation)


def _grants(operation: Operation, waited: frozenset[str]) -> Iterator[Grant]:
    for row in _rows(operation):
        if row.applies(operation.request):
            yield row
    name = operation.name[0].lower() + operation.name[1:]
    if operation.service == "sagemaker" and name in waited:
        yield from SYNCHRONOUS[name]


def _fields(operation: Operation, known: Known) -> dict[str, str]:
    fields = {
        name: pattern(value, known)
        for name, value in operation.request.items()
        if not isinstance(value, Mapping | list | tuple)
    }
    return {name: _whole(name, text) for name, text in fields.items()}


def _whole(name: str, text: str) -> str:
    """Return the pattern of a field; of an ARN whose beginning is unknown nothing is known."""
    is_unknown = name.lower().endswith("arn") and text.startswith(ANY)
    return ANY if is_unknown else text


def _passed(operation: Operation, known: Known, place: Mapping[str, str]) -> Iterator[Statement]:
    grant = PASSED.get(operation.service) or derived.passed(operation)
    if grant is not None:
        every = f"arn:{place['partition']}:iam::{place['account']}:role/{ANY}"
        for value in roles(operation.request):
            role = pattern(value, known)
            yield _filled(grant, {**place, "role": every if role == ANY else role})
    for key in () if operation.service in USED_BY_ROLES else keys(operation.request):
        yield for_key(KEYS[operation.service], pattern(key, known), place)
    grant = DECRYPTED.get(operation.service)
    if operation.decrypts is not None and grant is not None:
        yield for_key(grant, pattern(operation.decrypts, known), place)


def for_key(grant: Grant, key: str, place: Mapping[str, str]) -> Statement:
    """Return the statement of a grant ``{key}`` for a KMS key, given as ARN, alias or id."""
    match = _KEY_ARN.fullmatch(key)
    region, owner = match.groups() if match else (place["region"], place["account"])
    prefix = f"arn:{place['partition']}:kms:{region}:{owner}:"
    alias = key.removeprefix(prefix)
    fields = {**place, "key_region": region}
    if alias.startswith("alias/"):
        named: Condition = {
            **grant.condition,
            "ForAnyValue:StringEquals": {"kms:ResourceAliases": "{alias}"},
        }
        return _filled(
            replace(grant, condition=named), {**fields, "key": f"{prefix}key/{ANY}", "alias": alias}
        )
    whole = key if key.startswith("arn:") else f"{prefix}key/{key}"
    return _filled(grant, {**fields, "key": whole})


def _filled(grant: Grant, fields: Mapping[str, str]) -> Statement:
    def fill(template: str) -> str:
        # The template's own wildcards stay wildcards.
        texts_and_fields = _FIELD.split(template)
        whole = [fields[name] for name in texts_and_fields[1::2] if fields[name].startswith("arn:")]
        if whole and template.startswith("arn:"):
            return iam(whole[-1])  # Many names may be given as the ARN.
        return "".join(
            iam(fields[part]) if index % 2 else part for index, part in enumerate(texts_and_fields)
        )

    through = via_service("s3", fields.get("key_region", ""))
    return Statement(
        sid=grant.sid,
        actions=frozenset(grant.actions),
        resources=frozenset(arn for r in grant.resources for arn in _cases(fill(r))),
        condition=tuple(
            (operator, key, through if key == _THROUGH else frozenset([fill(value)]))
            for operator, pairs in grant.condition.items()
            for key, value in pairs.items()
        ),
    )


def _cases(arn: str) -> set[str]:
    # SageMaker writes names in its ARNs in lower case, and IAM is case-sensitive.
    return {arn, arn.lower()} if ":sagemaker:" in arn else {arn}


def check_size(policy: Mapping[str, Any], role: str) -> None:
    """Refuse a policy that is too long for a role."""
    import json

    size = len(json.dumps(policy, separators=(",", ":")))
    if size > _MOST_CHARACTERS:
        raise UnsupportedError(
            f"the policy of {role} has {size} characters, and IAM allows {_MOST_CHARACTERS}; "
            "split the pipeline into two"
        )
