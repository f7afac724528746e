"""The paths beside the AWS API at which an embedded AWS is controlled and inspected."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import astuple
from typing import Any, Final

from orchestration.errors import LocalError
from orchestration.local.account.protocol import Answer
from orchestration.local.account.records import Fault
from orchestration.local.account.roles import provide as provide_role
from orchestration.local.account.stand_ins import StandIn
from orchestration.local.iam.principals import session
from orchestration.local.policies.deciding import accesses
from orchestration.local.server.simulation import Simulation
from orchestration.local.server.snapshot import snapshot

PREFIX = "/_embedded/"
# A request for events is answered after this time even if there is none.
_LONGEST_WAIT_S = 2.0
_PROVIDING = threading.Lock()
_SHOWN: Final[Mapping[str, Callable[[Simulation], Any]]] = {
    "accesses": lambda _: [access.to_json() for access in accesses()],
    "calls": lambda simulation: [call.to_json() for call in simulation.account.recorder.calls()],
    "progress": lambda simulation: simulation.sagemaker.progress(),
    "state": snapshot,
}


def answer(simulation: Simulation, path: str, body: bytes) -> Answer:
    """Answer a request below `/_embedded/`."""
    what = path.removeprefix(PREFIX)
    data: Any
    if what in _SHOWN:
        data = _SHOWN[what](simulation)
    elif what == "faults":
        fault = json.loads(body)
        faults = simulation.account.faults
        if fault:
            faults.inject(Fault.from_json(fault))
        else:
            faults.clear()
        data = {}
    elif what == "session":
        data = astuple(session(**json.loads(body)))
    elif what == "resources":
        _provide(simulation, **json.loads(body))
        data = {}
    elif what == "time":
        data = _moved(simulation, **json.loads(body))
    elif what == "events":
        data = _events(simulation.account.region, **json.loads(body))
    elif what.startswith("layers/"):
        layer = simulation.ecr.layer(what.removeprefix("layers/"))
        return Answer(404 if layer is None else 200, layer or b"", _BYTES)
    elif what.startswith("logs/"):
        data = {"logs": simulation.sagemaker.logs(what.removeprefix("logs/"))}
    else:
        return Answer(404, b'{"message": "unknown path"}', _TYPE)
    return Answer(200, json.dumps(data, default=str).encode(), _TYPE)


def _provide(
    simulation: Simulation,
    *,
    roles: list[str],
    subnets: list[str],
    security_groups: list[str],
    stand_ins: list[dict[str, Any]],
    quotas: dict[str, float],
) -> None:
    account = simulation.account
    # Two runs that start at once ask for the same.
    with _PROVIDING:
        for arn in roles:
            provide_role(arn)
        account.networks.provide(subnets, security_groups)
        simulation.quotas.provide(quotas)
        account.stand_ins.provide(StandIn(**each) for each in stand_ins)


def _moved(simulation: Simulation, *, seconds: float) -> Any:
    try:
        region, sagemaker = simulation.account.region, simulation.sagemaker.operations
        return {"started": simulation.calendar.move(seconds, region, sagemaker)}
    except LocalError as error:
        return {"refused": str(error)}


def _events(region: str, *, execution: str, after: int) -> Any:
    # Imported here because it loads moto's engine, which many servers never need.
    from orchestration.local.engine import history

    return history.events(execution, region, after, _LONGEST_WAIT_S)


_TYPE = (("Content-Type", "application/json"),)
_BYTES = (("Content-Type", "application/octet-stream"),)
