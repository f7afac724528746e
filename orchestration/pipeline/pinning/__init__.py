"""Digests of code and plans, pinned in a lock file beside the file that describes a pipeline."""
