"""Judges that no one here wrote: the public ASL validators and the reference JSONata."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S

_TOOLS = Path(__file__).resolve().parent.parent / "tools" / "asl"


class NodeTool:
    """A node script that answers each line of JSON with one line of JSON."""

    def __init__(self, *command: str) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            ["node", *command],
            cwd=_TOOLS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def ask(self, question: Mapping[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # ASCII, because node's readline breaks lines at U+2028 too.
        line = json.dumps(question, ensure_ascii=True, allow_nan=False)
        with self._lock:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        if not answer:
            pytest.fail(f"the node tool ended with status {self._process.wait(timeout=PATIENCE_S)}")
        return json.loads(answer)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=PATIENCE_S)
        self._process.stdout.close()


@contextmanager
def node_tool(*command: str) -> Iterator[NodeTool]:
    """Run a script of ``tools/asl``; skip the test where node is missing, fail it in CI."""
    if shutil.which("node") is None or not (_TOOLS / "node_modules").is_dir():
        reason = "the public validators are not installed: install node, then run `make setup`"
        if os.environ.get("ORCHESTRATION_REQUIRE_NODE"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    tool = NodeTool(*command)
    try:
        yield tool
    finally:
        tool.close()


# asl-validator 4.0.0 takes the elements of a list in a list for objects; the language has no such
# rule, and requests such as `{"instances": [[0.5]]}` need them.
_IN_NESTED_LIST = re.compile(r"/Arguments/.+/\d+/\d+ is invalid. must be object")


class AslValidators:
    """Call it with a definition: the list of what `asl-validator` and the language service say.

    A problem has ``validator``, ``code``, ``message`` and often ``where``.
    """

    def __init__(self, tool: NodeTool) -> None:
        self._tool = tool

    def __call__(self, definition: Mapping[str, Any]) -> list[dict[str, str]]:
        problems: list[dict[str, str]] = self._tool.ask(definition)
        return [problem for problem in problems if not _IN_NESTED_LIST.search(problem["message"])]


class JsonataError(Exception):
    """The reference implementation refused an expression; ``code`` is its own, such as D1001."""

    def __init__(self, message: str, code: str | None) -> None:
        super().__init__(message)
        self.code = code


class JsonataReference:
    """Call it with an expression (bare, no ``{% %}``) and bindings (named without the dollar).

    ``states`` is a binding like any other. What JSONata leaves undefined comes back as ``None``,
    or as ``undefined`` where that was given.
    """

    def __init__(self, tool: NodeTool) -> None:
        self._tool = tool

    def __call__(
        self,
        expression: str,
        bindings: Mapping[str, Any] | None = None,
        *,
        undefined: Any = None,
    ) -> Any:
        answer = self._tool.ask({"expression": expression, "bindings": dict(bindings or {})})
        if "error" in answer:
            raise JsonataError(answer["error"], answer.get("code"))
        return undefined if answer.get("undefined") else answer["value"]
