"""Changes that happen by themselves after a while."""

from __future__ import annotations

import threading
from collections.abc import Callable

from orchestration.local.account.account import Account


def later(account: Account, simulated_s: float, action: Callable[[], None]) -> None:
    """Do something after some seconds of AWS."""
    timer = threading.Timer(account.clock.pause(simulated_s), action)
    timer.daemon = True
    timer.start()
