"""Settings of the SDK's objects that a training job has no counterpart for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from orchestration.errors import PipelineError, Problem

T = TypeVar("T")


class Findings:
    """Problems of one conversion, reported all at once."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self._found: list[Problem] = []

    def add(self, path: str, message: str) -> None:
        """Record a problem; ``path`` is an attribute of the subject."""
        self._found.append(Problem(f"{self.subject}.{path}" if path else self.subject, message))

    def under(self, path: str, problems: Iterable[Problem]) -> None:
        """Record problems that one of our models has with the value of an attribute."""
        for problem in problems:
            self.add(".".join(part for part in (path, problem.path) if part), problem.message)

    def end(self) -> None:
        """Raise :class:`~orchestration.errors.PipelineError` if there are problems."""
        if self._found:
            raise PipelineError(dict.fromkeys(self._found))

    def made(self, path: str, make: Callable[[], T]) -> T | None:
        """Return the result of ``make``; record refusals of our models at ``path``."""
        try:
            return make()
        except ValidationError as error:
            for entry in error.errors(include_url=False):
                where = ".".join(str(part) for part in entry["loc"])
                self.add(path, f"{where}: {entry['msg']}" if where else entry["msg"])
        except PipelineError as error:
            self.under(path, error.problems)
        return None


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


def refuse_variables(findings: Findings, attributes: Mapping[str, Any]) -> None:
    """Report every pipeline variable."""
    for name, value in attributes.items():
        for path in variables(value, name):
            findings.add(
                path,
                "is a pipeline variable of the SDK, whose value only SageMaker Pipelines knows; "
                "set the value, or change the field of the training job to a parameter or a "
                "reference of ours afterwards",
            )
