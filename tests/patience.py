"""How long a test waits for what must happen."""

PATIENCE_S = 900.0
"""Far more than anything here takes on a busy machine: only what hangs takes as long."""
