"""Monitoring of a deployed pipeline: the log of its executions, and traces of its calls."""
