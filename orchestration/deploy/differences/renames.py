"""Earlier names of a pipeline: what is deployed under another, and has the same stages.

Only where a pipeline is deployed for the first time anything is read, and whoever may not read it
is told nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from orchestration.backends.companion import SUFFIX
from orchestration.backends.origins import parts
from orchestration.deploy.account import OWNER, Clients
from orchestration.errors import DeployError, PipelineError
from orchestration.pipeline.yaml import parsed

_MOST: Final = 100
"""State machines that are looked at, each by a request."""

_File = Mapping[str, Any]


def warnings(definition: Mapping[str, Any], session: Clients) -> tuple[str, ...]:
    """Tell the pipelines in an account that have the stages of a definition's pipeline."""
    from botocore.exceptions import BotoCoreError, ClientError

    found = []
    try:
        for own in carried(definition):
            for name in _deployed(own, session.client("stepfunctions")):
                found.append(told(name))
    except (BotoCoreError, ClientError):
        pass  # What was found until then is told.
    return tuple(found)


def _deployed(own: _File, states: Any) -> Iterator[str]:
    from botocore.exceptions import ClientError

    pages = states.get_paginator("list_state_machines").paginate(
        PaginationConfig={"MaxItems": 10 * _MOST}
    )
    listed = (each for page in pages for each in page["stateMachines"])
    machines = [each for each in listed if not each["name"].endswith(SUFFIX)]
    for each in sorted(machines, key=lambda each: each["creationDate"], reverse=True)[:_MOST]:
        try:
            is_one = _is_earlier(own, each, states)
        except ClientError:
            continue  # It is gone by now, or this one alone may not be read.
        if is_one:
            yield str(each["name"])


def _is_earlier(own: _File, listed: Mapping[str, Any], states: Any) -> bool:
    arn = listed["stateMachineArn"]
    definition = json.loads(states.describe_state_machine(stateMachineArn=arn)["definition"])
    if not any(same_stages(own, other) for other in carried(definition)):
        return False
    tags = states.list_tags_for_resource(resourceArn=arn)["tags"]
    return {"key": OWNER, "value": listed["name"]} in tags


def same(name: str) -> str:
    """Say that a pipeline is not renamed."""
    return f"pipeline {name} has this name now; give the one that it was deployed with before"


def told(name: str) -> str:
    """Tell a pipeline that may be an earlier name of another."""
    return (
        f"pipeline {name} is deployed here, with the same stages; if this is its new name, deploy "
        f"with --renamed-from {name}, which destroys it there: until then its schedule and its "
        "triggers go on starting runs"
    )


def nothing(name: str) -> str:
    """Tell that an earlier name is that of nothing."""
    return (
        f"nothing of pipeline {name} is deployed here; leave --renamed-from out if that was "
        "destroyed before, and else give the name that this pipeline was deployed with"
    )


def refuse_another(name: str, own: Sequence[_File], former: Sequence[_File]) -> None:
    """Refuse an earlier name that is another pipeline's; files without stages tell nothing."""
    ours, theirs = ([_stages(each) for each in files if _stages(each)] for files in (own, former))
    if not ours or not theirs or any(_share(each, other) for each in ours for other in theirs):
        return
    raise DeployError(
        f"pipeline {name} shares no stage with this one, so it is another one, and "
        f"--renamed-from {name} would destroy it; leave that out, and use orchestrate destroy if "
        f"{name} has to go"
    )


def _stages(pipeline: _File) -> Mapping[str, Any]:
    found = pipeline.get("stages")
    return found if isinstance(found, dict) else {}


def _share(own: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether a stage of both has the same name, or says the same."""
    return bool(own.keys() & other.keys()) or any(each in other.values() for each in own.values())


def carried(definition: Mapping[str, Any]) -> tuple[_File, ...]:
    """Return the pipeline that a definition carries as a file; nothing if it carries none."""
    texts = parts(definition)
    found = read(texts[1]) if len(texts) == 3 else None
    return () if found is None else (found,)


def read(text: str) -> _File | None:
    """Return the pipeline in a text of YAML; ``None`` if there is none."""
    try:
        # As JSON, in which all keys are text and can be sorted.
        found = json.loads(json.dumps(parsed(text, Path("pipeline.yaml"))))
    except (PipelineError, ValueError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("name"), str) else None


def same_stages(own: _File, other: _File) -> bool:
    """Return whether two pipelines have the same stages, in which each may name itself."""
    if own["name"] == other["name"] or not own.get("stages"):
        return False
    ours, theirs = (json.dumps(each.get("stages"), sort_keys=True) for each in (own, other))
    return theirs in (ours, ours.replace(own["name"], other["name"]))
