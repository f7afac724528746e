"""``orchestrate cost``: an estimate before a run, and what its jobs were billed after it."""
