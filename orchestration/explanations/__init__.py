"""Explanations of errors: what happened, what to do, which stages raise it, an example.

One text for each name that a run or a command may end with: ``orchestrate explain`` prints it, the
run's page shows it, and the documentation has a page of it. ``tests/test_explanations.py`` refuses
an error without an explanation, and an explanation without an error.
"""

from __future__ import annotations

from orchestration.explanations.explanation import Explanation
from orchestration.explanations.telling import hint, markdown
from orchestration.explanations.texts import explained, explanations

__all__ = ["Explanation", "explained", "explanations", "hint", "markdown"]
