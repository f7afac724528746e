"""Step Functions: moto's engine, repaired by replacing parts of it instead of forking it.

This changes moto's modules, so it happens only in the server's own process. Each module says what
is wrong in moto 5.2.5 and which test fails when that changes; `seams.replace` refuses a moto that
lacks a replaced part.
"""

from __future__ import annotations

from orchestration.local.account.activity import Activity
from orchestration.local.account.clock import Clock


def install(clock: Clock, activity: Activity, endpoint_url: str) -> None:
    """Enable and repair the engine; executions send their calls to `endpoint_url`."""
    from moto.core.config import default_user_config

    from orchestration.local.engine import loading

    loading.import_engine()
    from orchestration.local.engine import (
        clients,
        definitions,
        history,
        integrations,
        jsonata,
        lifecycle,
        matching,
        timing,
    )

    default_user_config["stepfunctions"] = {"execute_state_machine": True}
    loading.install()
    history.install()
    jsonata.install()
    matching.install()
    lifecycle.install()
    timing.install(clock)
    definitions.install()
    integrations.install(activity)
    clients.install(endpoint_url)
