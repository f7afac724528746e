"""The error tree.

::

    OrchestrationError
    ├── PipelineError      (ValueError)    the description is wrong; carries every problem
    ├── ReferenceUseError  (TypeError)     a reference was used as if its value were known
    ├── ExpressionError    (ValueError)    an expression can't be evaluated with the values at hand
    ├── GraphError         (ValueError)    a step graph is not well formed
    ├── RequestError       (ValueError)    a request breaks the shapes of the AWS API
    ├── UnsupportedError   (ValueError)    a backend can't do what the graph asks for
    ├── DeployError        (RuntimeError)  a deployment can't go on
    ├── LocalError         (RuntimeError)  the embedded AWS can't go on
    ├── StartError         (RuntimeError)  a run from this process can't start or go on
    └── RunError           (RuntimeError)  a run failed; carries error and cause as they came
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from difflib import get_close_matches


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, where it stands, and what to do about it."""

    field: str
    """A path inside the stage or step; without either, inside the user's description."""
    message: str
    """The problem, and the remedy."""
    _: KW_ONLY
    stage: str | None = None
    """The stage of a pipeline."""
    step: str | None = None
    """The step of a graph."""
    section: str = "stages"
    """The field of the pipeline that the stage stands in."""

    @property
    def path(self) -> str:
        """The whole path, for people: ``stages.train.cluster.instance_count``."""
        if self.step is not None:
            return f"{self.step}: {self.field}" if self.field else self.step
        if self.stage is None:
            return self.field
        place = f"{self.section}.{self.stage}"
        return f"{place}.{self.field}" if self.field else place

    def within(self, field: str) -> Problem:
        """Return the same problem, of the object that holds this one as a field."""
        return replace(self, field=f"{field}.{self.field}" if self.field else field)

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


_MOST_NAMES = 12
"""AWS knows hundreds of instance types; a message names so many at the most."""
_SHORT = 6
"""Letters of names that are likely to be close to another by chance: ``catch`` and ``batch``."""


def near(name: str, known: Iterable[str]) -> str:
    """The way out of a misspelling: the nearest known name, or else what is known.

    >>> near("trian", ["evaluate", "train"])
    "; did you mean 'train'?"
    """
    names = sorted(known)
    for close in get_close_matches(name, names):
        if _is_meant(name, close):
            return f"; did you mean {close!r}?"
    if not names:
        return ""
    more = len(names) - _MOST_NAMES
    return f"; there is {', '.join(names[:_MOST_NAMES])}{f' and {more} more' if more > 0 else ''}"


def _is_meant(name: str, close: str) -> bool:
    """Return whether a name is a misspelling: of a short one, the first letter is seldom wrong."""
    return len(name) > _SHORT or name[:1].casefold() == close[:1].casefold()


class OrchestrationError(Exception):
    """Root of every error this package raises on purpose."""


class _Problems(OrchestrationError):
    """An error that reports all its problems at once."""

    headline = "this is wrong"

    def __init__(self, problems: Iterable[Problem | str]) -> None:
        self.problems = tuple(p if isinstance(p, Problem) else Problem("", p) for p in problems)
        super().__init__(self._text())

    def __reduce__(self) -> tuple[type[_Problems], tuple[tuple[Problem, ...]]]:
        # An exception is pickled as its arguments, and the text alone would be taken for problems.
        return type(self), (self.problems,)

    def _text(self) -> str:
        if len(self.problems) == 1:
            return str(self.problems[0])
        lines = "\n".join(f"  - {problem}" for problem in self.problems)
        return f"{self.headline} ({len(self.problems)} problems):\n{lines}"


class PipelineError(_Problems, ValueError):
    """The description of a pipeline is wrong."""

    headline = "the pipeline is not valid"


class GraphError(_Problems, ValueError):
    """A step graph is not well formed."""

    headline = "the step graph is not well formed"


class RequestError(_Problems, ValueError):
    """A request breaks the shapes of the AWS API."""

    headline = "requests that AWS would refuse"


class UnsupportedError(_Problems, ValueError):
    """A backend can't do what the graph asks for, and says so instead of leaving it out."""

    headline = "this backend can't do that"


class ReferenceUseError(OrchestrationError, TypeError):
    """A reference was used as if its value were known before the run."""


class ExpressionError(OrchestrationError, ValueError):
    """An expression can't be evaluated with the values at hand."""


class DeployError(OrchestrationError, RuntimeError):
    """A deployment can't go on."""


class LocalError(OrchestrationError, RuntimeError):
    """The embedded AWS can't go on."""


class StartError(OrchestrationError, RuntimeError):
    """A run from this process can't start, or can't go on under its run id."""


class RunError(OrchestrationError, RuntimeError):
    """A run failed."""

    def __init__(self, error: str, cause: str) -> None:
        self.error = error
        self.cause = cause
        super().__init__(f"{error}: {cause}")

    def __reduce__(self) -> tuple[type[RunError], tuple[str, str]]:
        return type(self), (self.error, self.cause)
