"""Temporary endpoints: recognised by the names and tags of their configurations, and deleted.

A configuration is made before its endpoint and deleted after it. The model stays: it is named after
its content, costs nothing, and what serves may need it.
"""

from __future__ import annotations

from typing import Final

from orchestration.backends.companion.writing import (
    NEXT_PAGE,
    State,
    alternatives,
    caught,
    choice,
    each,
    ended,
    paged,
    pages,
    recognised,
    tag,
    task,
)
from orchestration.backends.jsonata import enclosed, quote
from orchestration.cleanup import TRIAL, Leftovers
from orchestration.expressions import Json

_POLLS: Final = 120
"""Every half minute: an hour, for a creation that takes minutes."""
_RUN_END: Final = "[0-9a-f]{12}$"
"""The end of the names: a run, or an element in a run."""
_GONE: Final = "$contains($states.input.Cause, 'Could not find')"


def finding(left: Leftovers, following: str) -> dict[str, State]:
    """Return the states that collect the configurations of such names, as ``$trials``."""
    if not left.trials:
        return {}
    named = alternatives(f"{prefix}{_RUN_END}" for prefix in left.trials)
    own = f"EndpointConfigs[$contains(EndpointConfigName, {named})]"
    found = f"$states.result.{own}.{{'name': EndpointConfigName, 'arn': EndpointConfigArn}}"
    # A listing is narrowed by one text only.
    same = f"'NameContains': {quote(left.trials[0])}, " if len(left.trials) == 1 else ""
    request = f"{{{same}'MaxResults': 100}}"
    listing = task(
        "sagemaker",
        "ListEndpointConfigs",
        pages(request),
        Assign={"trials": enclosed(f"[$trials, {found}]"), "page": NEXT_PAGE},
    )
    return paged("FindTrials", listing, following)


def releasing(left: Leftovers) -> dict[str, State]:
    """Return the state that deletes the endpoints of ended runs; it collects ``$problems``."""
    if not left.trials:
        return {}
    reading = task("sagemaker", "ListTags", {"ResourceArn": enclosed("$trial.arn")})
    tagged = f"$exists({tag(TRIAL, '$states.result.Tags')}) and "
    own = recognised("Trial", "ReadTrial", reading, gone=_GONE, also=tagged)
    states: dict[str, Json] = {**own, **_deleting()}
    collected = {"problems": enclosed("[$problems, $states.result[$ != '']]")}
    return {"EndTrials": each("$trials", "Trial", states, Assign=collected)}


def _deleting() -> dict[str, Json]:
    endpoint: Json = {"EndpointName": enclosed("$trial.name")}
    gone = "TrialEndpointGone"
    changing = "$states.input.EndpointStatus in ['Creating', 'Updating', 'RollingBack']"
    # An endpoint of this name that serves anything else is no trial's.
    other = "$states.input.EndpointConfigName != $trial.name"
    return {
        "ReadTrial": task(
            "sagemaker", "DescribeEndpoint", endpoint, Catch=[caught(gone)], Next="TrialSettled"
        ),
        "TrialSettled": choice(
            (other, "TrialDone"),
            (f"{changing} and $polls >= {_POLLS}", "TrialGoesOn"),
            (changing, "AwaitTrial"),
            ("$states.input.EndpointStatus = 'Deleting'", "ForgetTrial"),
            default="DeleteTrial",
        ),
        # What is still being created can't be deleted.
        "AwaitTrial": {
            "Type": "Wait",
            "Seconds": 30,
            "Assign": {"polls": enclosed("$polls + 1")},
            "Next": "ReadTrial",
        },
        "TrialGoesOn": ended(enclosed("$trial.name & ' is still being created'")),
        "DeleteTrial": task(
            "sagemaker", "DeleteEndpoint", endpoint, Catch=[caught(gone)], Next="ForgetTrial"
        ),
        gone: choice((_GONE, "ForgetTrial"), default="TrialNotEnded"),
        "ForgetTrial": task(
            "sagemaker",
            "DeleteEndpointConfig",
            {"EndpointConfigName": enclosed("$trial.name")},
            Catch=[caught("TrialGone")],
            Next="TrialDone",
        ),
    }
