"""The end of what a run has left running."""
