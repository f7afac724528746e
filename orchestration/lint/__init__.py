"""Rules for definitions of state machines, whoever wrote them.

Pure: a definition becomes findings, each with a rule, a path into the user's file, the problem and
the remedy. It says what public validators leave out: integrations and requests against botocore's
models, names and paths in expressions, what a failure leaves running. ``docs/lint.md`` has the
rules and their sources.
"""

from orchestration.lint.checking import check, lint
from orchestration.lint.findings import RULES, Finding

__all__ = ["RULES", "Finding", "check", "lint"]
