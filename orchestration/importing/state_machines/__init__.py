"""State machines in the Amazon States Language as pipelines, as far as stages do the same.

States become steps in their order, choices the conditions of what they lead to, and paths and
expressions references to the steps whose results they read. Loops, what errors lead to, and states
that no stage stands for are left out, and told.

https://docs.aws.amazon.com/step-functions/latest/dg/concepts-amazon-states-language.html
"""

from orchestration.importing.state_machines.importing import from_state_machine

__all__ = ["from_state_machine"]
