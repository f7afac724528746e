"""States before a run's first step, beside those that read its parameters."""
