"""The interruption of a direct run by its user."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    import pytest


def interrupt(caplog: pytest.LogCaptureFixture) -> None:
    """Interrupt the run that this is called in; returns once the main thread has taken it.

    It takes up to half a second, in which a quick run would end.
    """
    os.kill(os.getpid(), signal.SIGINT)
    end = time.monotonic() + PATIENCE_S
    while not any("interrupted: " in each.getMessage() for each in caplog.records):
        assert time.monotonic() < end, "nobody has taken the interruption"
        time.sleep(0.01)
