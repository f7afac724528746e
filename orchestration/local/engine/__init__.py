"""Step Functions: moto's engine, with its faults mended by seams instead of a fork.

Everything is a change of moto's modules, so it happens only in the server's own process.
"""

from __future__ import annotations

from orchestration.local.account.activity import Activity
from orchestration.local.account.clock import Clock


def install(clock: Clock, activity: Activity, endpoint_url: str) -> None:
    """Switch the engine on and mend it; calls of executions go to `endpoint_url`."""
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
