"""The doctor: everything that would fail a run, found before the run is paid for.

Offline it says what validation knows. With an account it compares what the requests of a pipeline
ask for with what the account has: each check of the room ``checks`` reads one kind of thing, with
calls that change nothing (:mod:`.reader` lets no other through). What can't be read is a finding
of its own.
"""

from orchestration.preflight.examining import examine
from orchestration.preflight.findings import Finding, Severity, ordered
from orchestration.preflight.offline import from_validation

__all__ = ["Finding", "Severity", "examine", "from_validation", "ordered"]
