"""How a job's own code is started: its interpreter and its environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from orchestration.local.account.account import Account

_PACKAGE_ROOT = Path(__file__).resolve().parents[4]


def interpreter(command: list[str]) -> list[str]:
    """A command whose Python is this one."""
    name = os.path.basename(command[0])
    return [sys.executable if name in ("python", "python3") else command[0], *command[1:]]


def job_environment(
    account: Account, own: Mapping[str, str], told: Mapping[str, str]
) -> dict[str, str]:
    """The environment of a job's process: its own entries, unless they would lead elsewhere."""
    base = {key: value for key, value in account.environment.items() if key != "MOTO_PORT"}
    path = os.pathsep.join([os.path.dirname(sys.executable), base.get("PATH", os.defpath)])
    searched = os.pathsep.join(filter(None, [str(_PACKAGE_ROOT), base.get("PYTHONPATH")]))
    return {
        **base,
        # The machine is small and the hosts are many.
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        "PATH": path,
        "PYTHONPATH": searched,
        **{key: value for key, value in own.items() if not key.startswith("AWS_")},
        "AWS_SDK_UA_APP_ID": "orchestration-local-job",
        **told,
    }
