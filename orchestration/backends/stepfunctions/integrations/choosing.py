"""The choice between the two integrations that can start a job.

``.sync`` waits for a job's end by itself; after ``aws-sdk`` the job is polled. ``.sync`` is taken
where it is sure to know all fields of the request, unless the pipeline says otherwise.

https://docs.aws.amazon.com/step-functions/latest/dg/connect-sagemaker.html (read November 2026)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from orchestration.backends.stepfunctions.integrations.services import camel
from orchestration.backends.stepfunctions.integrations.table import (
    NewField,
    known,
    newer,
    synchronous,
)
from orchestration.expressions import Tree
from orchestration.graph import Call, Integration, Operation, stage_of


def is_synchronous(call: Call, integrations: Mapping[str, Integration]) -> bool:
    """Return whether Step Functions waits for a call's job by ``.sync``.

    ``integrations`` is what the pipeline says: by stage, or for all under an empty name.
    """
    chosen = asked(call, integrations)
    if chosen == "sdk" or not can_wait(call):
        return False
    return chosen == "sync" or not any(unsure(call.operation, "sync"))


def asked(call: Call, integrations: Mapping[str, Integration]) -> Integration | None:
    """Return the integration that the pipeline asks for in a call's stage."""
    return integrations.get(stage_of(call.name), integrations.get(""))


def can_wait(call: Call) -> bool:
    """Return whether ``.sync`` waits for what the call waits for, whatever its fields are."""
    operation, until = call.operation, call.until
    if key(operation) not in synchronous() or until is None:
        return False
    job = operation.name.removeprefix("Create")
    poll, name = until.poll, f"{job}Name"
    return (
        not call.outputs
        and (poll.service, poll.name) == ("sagemaker", f"Describe{job}")
        and poll.request == {name: operation.request.get(name)}
        and until.status == (f"{job}Status",)
        and until.success == {"Completed"}
        and until.failure == {"Failed", "Stopped"}
        and until.gone is None
    )


def optimised(operation: Operation) -> str:
    """Return the resource of a Task that starts a job and waits for its end."""
    return f"arn:aws:states:::{operation.service}:{camel(operation.name)}.sync"


def key(operation: Operation) -> str:
    """Return an operation as the tables name it."""
    return f"{operation.service}:{operation.name}"


def unsure(operation: Operation, integration: Integration) -> Iterator[NewField]:
    """Yield the fields of a request that an integration is not sure to take."""
    for field in _new(key(operation), operation.request, ""):
        if field.certainty(integration) != "known":
            yield field


def _new(operation: str, tree: Tree, at: str) -> Iterator[NewField]:
    members = known().get((operation, at))
    if isinstance(tree, Sequence) and not isinstance(tree, str):
        fields = (field for item in tree for field in _new(operation, item, at))
        yield from dict.fromkeys(fields)
    # The keys of maps are named by users, and the table has no members of them.
    elif members is not None and isinstance(tree, Mapping):
        for name, value in tree.items():
            path = f"{at}.{name}" if at else name
            row = newer().get((operation, path))
            if row is not None:
                yield row
            elif name not in members:
                yield NewField(operation, path, since="")
            if name in members:
                yield from _new(operation, value, path)
