"""The interpreter and the environment of a job's code."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from orchestration.local.account.account import Account

_PACKAGE_ROOT = Path(__file__).resolve().parents[4]


def interpreter(command: list[str]) -> list[str]:
    """Replace the Python of a command with this interpreter."""
    name = os.path.basename(command[0])
    return [sys.executable if name in ("python", "python3") else command[0], *command[1:]]


def job_environment(
    account: Account, own: Mapping[str, str], fixed: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of a job's process.

    `own` are the entries of the request, of which those that could lead to the real AWS are
    dropped; `fixed` overrides them.
    """
    base = {key: value for key, value in account.environment.items() if key != "MOTO_PORT"}
    path = os.pathsep.join([os.path.dirname(sys.executable), base.get("PATH", os.defpath)])
    # Modules of the request's own are found as well as this package.
    places = [str(_PACKAGE_ROOT), base.get("PYTHONPATH"), own.get("PYTHONPATH")]
    return {
        **base,
        # Many hosts share a small machine.
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        "PATH": path,
        **{key: value for key, value in own.items() if not key.startswith("AWS_")},
        "PYTHONPATH": os.pathsep.join(filter(None, places)),
        "AWS_SDK_UA_APP_ID": "orchestration-local-job",
        **fixed,
    }
