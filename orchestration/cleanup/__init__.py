"""The resources that a run may have left, and how to find, stop and delete them.

A run that ends by itself stops its jobs and deletes its file systems. One that is ended from
outside may not. What it can have left is read from its steps: the calls that start jobs, and what
its guards acquire. Whoever looks for leftovers (the companion of a state machine, the last task of
a DAG) finds resources by the beginnings of their names and by their tags, and acts only on those
of a run that has ended.
"""

from orchestration.cleanup.leftovers import (
    COMPANION,
    JOB_KINDS,
    KEEP,
    MACHINE,
    PIPELINE,
    RUN,
    TRIAL,
    JobKind,
    Jobs,
    Leftovers,
    leftovers,
)

__all__ = [
    "COMPANION",
    "JOB_KINDS",
    "KEEP",
    "MACHINE",
    "PIPELINE",
    "RUN",
    "TRIAL",
    "JobKind",
    "Jobs",
    "Leftovers",
    "leftovers",
]
