"""The state of an account as a JSON object, for comparing the results of runs."""

from __future__ import annotations

import hashlib
from typing import Any

from orchestration.local.account import storage
from orchestration.local.account.protocol import ACCOUNT_ID
from orchestration.local.server.simulation import Simulation


def snapshot(simulation: Simulation) -> dict[str, Any]:
    """Return everything that pipelines create in an account, by service and kind.

    Others may go on meanwhile. So this and all `state` below go through copies of what is there.
    """
    return {
        "sagemaker": simulation.sagemaker.state(),
        "fsx": simulation.file_systems.state(),
        "datasync": simulation.datasync.state(),
        "s3": _buckets(),
        "s3control": simulation.batch.state(),
        "stepfunctions": _state_machines(simulation.account.region),
        "scheduler": _schedules(simulation.account.region),
        "events": _rules(simulation.account.region),
        "iam": _roles(),
    }


def _buckets() -> dict[str, Any]:
    from moto.s3.models import s3_backends

    return {
        name: {
            key: {"Size": stored.size, "SHA256": hashlib.sha256(stored.value).hexdigest()}
            for key, stored in storage.current(bucket).items()
        }
        for name, bucket in sorted(s3_backends[ACCOUNT_ID]["aws"].buckets.items())
    }


def _state_machines(region: str) -> dict[str, Any]:
    from moto.stepfunctions.parser.models import stepfunctions_parser_backends

    backend = stepfunctions_parser_backends[ACCOUNT_ID][region]
    return {
        machine.name: {
            "Definition": machine.definition,
            "RoleArn": machine.roleArn,
            "Executions": {run.name: str(run.status) for run in machine.executions},
        }
        for machine in backend.state_machines
    }


def _schedules(region: str) -> dict[str, Any]:
    from moto.scheduler.models import scheduler_backends

    groups = scheduler_backends[ACCOUNT_ID][region].schedule_groups
    return {
        f"{group.name}/{name}": schedule.to_dict()
        for group in list(groups.values())
        for name, schedule in sorted(group.schedules.items())
    }


def _rules(region: str) -> list[str]:
    from moto.events.models import events_backends

    buses = events_backends[ACCOUNT_ID][region].event_buses
    return sorted(f"{bus.name}/{rule}" for bus in list(buses.values()) for rule in list(bus.rules))


def _roles() -> dict[str, Any]:
    from moto.iam.models import iam_backends

    return {
        role.name: {
            "Trust": role.assume_role_policy_document,
            "Policies": dict(role.policies),
        }
        for role in list(iam_backends[ACCOUNT_ID]["aws"].roles.values())
    }
