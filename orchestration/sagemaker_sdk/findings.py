"""Settings of the SDK's objects that a training job has no counterpart for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from orchestration.errors import PipelineError, Problem
from orchestration.pipeline.wording import phrase

T = TypeVar("T")


class Findings:
    """Problems of one conversion, reported all at once."""

    def __init__(self, subject: str, names: Mapping[str, str] | None = None) -> None:
        """``names``: the attributes of the subject that our fields are made of."""
        self.subject = subject
        self._names = names or {}
        self._found: list[Problem] = []

    def add(self, path: str, message: str) -> None:
        """Record a problem; ``path`` is an attribute of the subject."""
        path = path.removeprefix("_")
        self._found.append(Problem(f"{self.subject}.{path}" if path else self.subject, message))

    def under(self, path: str, problems: Iterable[Problem]) -> None:
        """Record problems that one of our models has with the value of an attribute."""
        for problem in problems:
            self.add(".".join(part for part in (path, problem.path) if part), problem.message)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems so far, each once."""
        return tuple(dict.fromkeys(self._found))

    def end(self) -> None:
        """Raise :class:`~orchestration.errors.PipelineError` if there are problems."""
        if self._found:
            raise PipelineError(self.problems)

    def made(self, path: str, make: Callable[[], T]) -> T | None:
        """Return the result of ``make``; record refusals of our models at ``path``."""
        try:
            return make()
        except ValidationError as error:
            for entry in error.errors(include_url=False):
                # What has no value here was refused itself, and so were entries that don't count.
                uncounted = entry["type"] == "too_short" and entry["input"]
                if (entry["input"] is not None or not self._found) and not uncounted:
                    self.add_once(self.place(path, entry["loc"]), phrase(entry))
        except PipelineError as error:
            self.under(path, error.problems)
        return None

    def place(self, path: str, location: tuple[str | int, ...]) -> str:
        """Return the attribute that a place in one of our models is made of."""
        for end in range(len(location), 0, -1):
            field = ".".join(str(part) for part in location[:end])
            name = self._names.get(f"{path}.{field}".removeprefix("."))
            if name is not None:
                return name + "".join(f"[{part!r}]" for part in location[end:] if _is_key(part))
        rest = "".join(f".{part}" for part in location if _is_key(part))
        return f"{self._names.get(path, path)}{rest}".removeprefix(".")

    def add_once(self, path: str, message: str) -> None:
        """Record a problem, unless there is one at this path.

        Each member of a union has a complaint of its own.
        """
        whole = f"{self.subject}.{path}" if path else self.subject
        if whole not in [problem.path for problem in self._found]:
            self.add(path, message)


def _is_key(part: str | int) -> bool:
    """Return whether a part of a location is a key, not a member of a union or a validator."""
    return isinstance(part, int) or "[" not in part


def is_variable(value: object) -> bool:
    """Return whether a value is known only when a SageMaker pipeline runs."""
    return any(kind.__name__ == "PipelineVariable" for kind in type(value).__mro__)


def variables(value: object, path: str) -> Iterable[str]:
    """Find the paths of pipeline variables in a value."""
    if is_variable(value):
        yield path
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from variables(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from variables(item, f"{path}[{index}]")
    elif type(value).__module__.startswith("sagemaker") and hasattr(value, "__dict__"):
        for key, item in vars(value).items():
            if not key.startswith("_") and "session" not in key:
                yield from variables(item, f"{path}.{key}")


def refuse_variables(findings: Findings, attributes: Mapping[str, Any]) -> bool:
    """Report every pipeline variable, and return whether there is one."""
    paths = [path for name, value in attributes.items() for path in variables(value, name)]
    for path in paths:
        findings.add(
            path,
            "is a pipeline variable of the SDK, whose value only SageMaker Pipelines knows; "
            "set the value, or change the field of the training job to a parameter or a "
            "reference of ours afterwards",
        )
    return bool(paths)
