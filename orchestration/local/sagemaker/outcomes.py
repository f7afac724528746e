"""How a job ends without completing."""

from __future__ import annotations


class JobFailed(Exception):
    """A job ends as Failed; the exception's text is its FailureReason."""


class JobStopped(Exception):
    """A job ends as Stopped; the exception's text is its secondary status."""
