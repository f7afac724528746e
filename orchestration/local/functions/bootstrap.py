"""The runtime of a function in Python: a script of its own, which imports nothing of this package.

It calls the handler with the event of ``event.json``, and leaves the result, or the error in
Lambda's form, in ``result.json``.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace


def main() -> None:
    """Run the handler that the command line names, in the folder that it names."""
    handler, code, folder = sys.argv[1:]
    sys.path.insert(0, code)
    event = json.loads(Path(folder, "event.json").read_text("utf-8"))
    outcome = _outcome(handler, event)
    Path(folder, "result.json").write_text(json.dumps(outcome), "utf-8")


def _outcome(handler: str, event: object) -> dict[str, object]:
    module, _, name = handler.rpartition(".")
    try:
        loaded = importlib.import_module(module)
    except ImportError as error:
        return _error("Runtime.ImportModuleError", f"Unable to import module '{module}': {error}")
    function = getattr(loaded, name, None)
    if function is None:
        text = f"Handler '{name}' missing on module '{module}'"
        return _error("Runtime.HandlerNotFound", text)
    context = SimpleNamespace(
        function_name=os.environ["AWS_LAMBDA_FUNCTION_NAME"],
        aws_request_id=os.environ["AWS_LAMBDA_REQUEST_ID"],
    )
    try:
        result = function(event, context)
    except Exception as error:
        return _error(type(error).__name__, str(error), traceback.format_tb(error.__traceback__))
    try:
        json.dumps(result)
    except (TypeError, ValueError) as error:
        return _error("Runtime.MarshalError", f"Unable to marshal response: {error}")
    return {"result": result}


def _error(kind: str, message: str, trace: list[str] | None = None) -> dict[str, object]:
    return {
        "error": {"errorMessage": message, "errorType": kind, "stackTrace": trace or []},
    }


if __name__ == "__main__":
    main()
