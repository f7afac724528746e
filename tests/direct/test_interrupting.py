"""An interruption is taken from the moment at which the work begins."""

from __future__ import annotations

import os
import signal

from orchestration.direct.interrupting import Interruption, attended


def test_the_first_thing_that_work_does_may_be_interrupted() -> None:
    for _ in range(50):
        interruption = Interruption()

        def work(interruption: Interruption = interruption) -> str:
            os.kill(os.getpid(), signal.SIGINT)
            return "stopped" if interruption.asked.wait(60) else "nobody has taken it"

        assert attended(work, interruption, lambda: "") == "stopped"
        assert not interruption.left.is_set()
