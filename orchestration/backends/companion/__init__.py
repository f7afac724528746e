"""The companion of a pipeline's state machine: it cleans up after executions that have ended.

Step Functions runs no ``Catch`` after ``StopExecution``, a time-out of the machine, or its own
``States.Runtime``. The companion is a state machine of its own, started by the events of such ends,
which are best effort, and by a schedule.
"""

from orchestration.backends.companion.rendering import SUFFIX, render

__all__ = ["SUFFIX", "render"]
