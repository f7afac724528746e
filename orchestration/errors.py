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

import re
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from dataclasses import field as attribute
from difflib import SequenceMatcher


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
    rule: str = attribute(default="", compare=False)
    """AWS's words for the rule of its model that a value breaks: ``not be null``."""

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
_CLOSE = 0.63
"""The least likeness of a misspelling: ``inputs`` and ``input_mode`` are other words (0.625)."""
_NEARLY_EQUAL = 0.84
"""The least likeness where the first letters differ: ``catch`` is not ``batch`` (0.8)."""
_SURE = 0.8
"""Below this likeness, a second name that is about as close may be meant as well."""
_ABOUT = 0.05
_SHORTEST = 3
"""Letters of a beginning: ``env`` of ``environment``."""


def near(name: str, known: Iterable[str]) -> str:
    """The way out of a misspelling: the nearest known name, or else what is known.

    >>> near("trian", ["evaluate", "train"])
    "; did you mean 'train'?"
    """
    names = sorted(known)
    if close := meant(name, names):
        return close
    if not names:
        return ""
    more = len(names) - _MOST_NAMES
    return f"; there is {', '.join(names[:_MOST_NAMES])}{f' and {more} more' if more > 0 else ''}"


def meant(name: str, known: Iterable[str]) -> str:
    """The same, but nothing where no known name is near."""
    names = sorted(known)
    close = _nearest(name, names) or _begun(name, names)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def misspelt(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a name misspells, if it can be no other one."""
    close = _nearest(name, sorted(known))
    return close[0] if len(close) == 1 else None


def _nearest(name: str, names: Sequence[str]) -> list[str]:
    """Return the name that is misspelled, or two that begin alike where either may be."""
    likely = (
        (_likeness(name, each), _matcher(name, each).quick_ratio(), each)
        for each in names
        if _is_close(name, each)
    )
    # Of names that are equally like, one with the same letters: two of them were swapped.
    ranked = sorted(likely, reverse=True)
    best = [each for likeness, _, each in ranked if ranked[0][0] - likeness <= _ABOUT]
    if not best or ranked[0][0] >= _SURE:
        return best[:1]
    return [each for each in best if _words(each)[0] == _words(best[0])[0]][:2]


def _matcher(name: str, known: str) -> SequenceMatcher[str]:
    return SequenceMatcher(None, known.casefold(), name.casefold())


def _likeness(name: str, known: str) -> float:
    return _matcher(name, known).ratio()


def _is_close(name: str, known: str) -> bool:
    """Return whether a name may be a misspelling; one with dots, in each part but numbers."""
    parts = zip(name.split("."), known.split("."), strict=False)
    likeness = _likeness(name, known)
    return likeness >= _CLOSE and (
        all(_is_close(*part) for part in parts if not all(map(str.isdecimal, part)))
        if "." in name and name.count(".") == known.count(".")
        else likeness >= _NEARLY_EQUAL
        or name[:1].casefold() == known[:1].casefold()
        or any(map(known.casefold().startswith, _words(name)))
        or any(map(name.casefold().startswith, _words(known)))
    )


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", name.casefold()) or [name]


def _begun(name: str, names: Sequence[str]) -> list[str]:
    """Return the only name that begins with another."""
    begun = [each for each in names if each.casefold().startswith(name.casefold())]
    return begun if len(begun) == 1 and len(name) >= _SHORTEST else []


class OrchestrationError(Exception):
    """Root of every error this package raises on purpose."""


class _Problems(OrchestrationError):
    """An error that reports all its problems at once."""

    headline = "this is wrong"

    def __init__(self, problems: str | Iterable[Problem | str]) -> None:
        # A text is an iterable of its letters, too.
        several = [problems] if isinstance(problems, str) else problems
        self.problems = tuple(p if isinstance(p, Problem) else Problem("", p) for p in several)
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
