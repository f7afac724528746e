"""Environment variables, read with every problem collected."""

from __future__ import annotations

import json
from typing import Any, Mapping, Sequence

from .errors import ClusterError


class Variables:
    """Environment variables; an empty one counts as unset. Problems are collected, not raised."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._problems: list[str] = []

    def __contains__(self, name: str) -> bool:
        return bool(self._environ.get(name))

    def object(self, problem: str) -> None:
        """Note a problem."""
        if problem not in self._problems:
            self._problems.append(problem)

    def check(self) -> None:
        """Raise ClusterError if there are problems."""
        if self._problems:
            raise ClusterError(self._problems)

    def show(self, *names: str) -> str:
        """Format variables as `A=1, B=2 and C=3`, for messages."""
        shown = [f"{name}={self._environ[name]}" for name in names if name in self]
        return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)

    def text(self, name: str) -> str | None:
        """Return a variable, or None."""
        return self._environ.get(name) or None

    def number(self, name: str, minimum: int = 0) -> int | None:
        """Return a variable that must be an integer, or None."""
        text = self.text(name)
        if text is None:
            return None
        try:
            number = int(text)
        except ValueError:
            self.object(f"{name}={text!r} is not an integer")
            return None
        if number < minimum:
            self.object(f"{name}={number} is less than {minimum}")
        return number

    def numbers(self, *names: str) -> tuple[int, ...] | None:
        """Return variables that are only meaningful together: all of them, or None.

        It is a problem if some are set and others are not.
        """
        values = [self.number(name) for name in names]
        if all(value is None for value in values):
            return None
        missing = [name for name in names if name not in self]
        if missing:
            present = self.show(*names)
            self.object(f"{present} without {' and '.join(missing)}")
        return tuple(0 if value is None else value for value in values)

    def mapping(self, name: str) -> dict[str, Any]:
        """Return a variable that holds a JSON object; an empty one if it is unset."""
        value = self._json(name, "{}")
        if not isinstance(value, dict):
            self.object(f"{name} must be a JSON object, got {value!r}")
            return {}
        return value

    def words(self, name: str) -> tuple[str, ...]:
        """Return a variable that holds a JSON list of strings; an empty one if it is unset."""
        return self.strings(self._json(name, "[]"), name)

    def strings(self, value: Any, name: str) -> tuple[str, ...]:
        """Return a value that must be a list of strings."""
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            self.object(f"{name} must be a JSON list of strings, got {value!r}")
            return ()
        return tuple(value)

    def agree(self, names: Sequence[str]) -> None:
        """Require that all of these variables that are set hold the same number."""
        present = [name for name in names if name in self]
        if len({self.number(name) for name in present}) > 1:
            self.object(f"{self.show(*present)} contradict each other")

    def _json(self, name: str, default: str) -> Any:
        text = self.text(name)
        try:
            return json.loads(text or default)
        except ValueError as error:
            self.object(f"{name} is not JSON: {error}")
            return json.loads(default)
