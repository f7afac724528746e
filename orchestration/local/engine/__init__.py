"""Step Functions: moto's engine, repaired by replacing parts of it instead of forking it.

This changes moto's modules, so it happens only in the server's own process. Each module says what
is wrong in moto 5.2.5 and which test fails when that changes; `seams.replace` refuses a moto that
lacks a replaced part.
"""

from __future__ import annotations

from orchestration.local.account.activity import Activity
from orchestration.local.account.clock import Clock
from orchestration.local.account.faults import Faults


def install(
    clock: Clock, activity: Activity, faults: Faults, endpoint_url: str, *, enforced: bool = False
) -> None:
    """Enable and repair the engine; executions send their calls to `endpoint_url`."""
    from moto.core.config import default_user_config

    from orchestration.local.engine import loading

    loading.import_engine()
    from orchestration.local.engine import (
        checks,
        definitions,
        failures,
        fields,
        history,
        jsonata,
        lifecycle,
        matching,
        quotas,
        status_events,
        timing,
    )
    from orchestration.local.engine.machines import creation, logs, versions
    from orchestration.local.engine.tasks import clients, optimised

    default_user_config["stepfunctions"] = {"execute_state_machine": True}
    loading.install()
    history.install()
    status_events.install()
    failures.install()
    jsonata.install()
    checks.install()
    matching.install()
    quotas.install()
    lifecycle.install()
    # Around what the others have replaced.
    fields.install()
    timing.install(clock)
    creation.install()
    logs.install()
    versions.install(faults)
    definitions.install()
    optimised.install(activity)
    clients.install(endpoint_url, as_roles=enforced)
