"""The server of one model, as in the container of an endpoint.

`python -m orchestration.local.sagemaker.serving.hosting DIRECTORY` loads `DIRECTORY/model`, writes
its port to `DIRECTORY/port` and answers `/ping` and `/invocations`. The handlers in
`model/code/inference.py` (or `SAGEMAKER_PROGRAM`) have the contract of the SageMaker PyTorch
inference toolkit:
<https://sagemaker.readthedocs.io/en/stable/frameworks/pytorch/using_pytorch.html#serve-a-pytorch-model>.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

JSON = "application/json"
_OWN = (
    "; a container of your own is stood in for by a program of this machine: `local: "
    "{command: [python3, serve.py], directory: FOLDER}` of the stage"
)


def default_input_fn(body: bytes, content_type: str) -> Any:
    """Decode JSON; return text unchanged."""
    if content_type == JSON:
        return json.loads(body)
    if content_type.startswith("text/"):
        return body.decode()
    raise ValueError(f"{content_type} needs an input_fn: the default reads JSON and text")


def default_output_fn(prediction: Any, accept: str) -> tuple[Any, str]:
    """Encode the prediction as JSON, tensors and arrays as lists."""
    if accept not in (JSON, "*/*", ""):
        raise ValueError(f"{accept} needs an output_fn: the default writes JSON")
    return json.dumps(prediction, default=lambda value: value.tolist()), JSON


def default_predict_fn(data: Any, model: Any) -> Any:
    """Call the model."""
    return model(data)


class Handlers:
    """A model, and the functions that serve it."""

    def __init__(self, model_dir: Path) -> None:
        module = _inference_module(model_dir)
        model_fn = getattr(module, "model_fn", None)
        if model_fn is None:
            raise SystemExit(f"missing model_fn in {module.__file__}")
        self._input = getattr(module, "input_fn", default_input_fn)
        self._predict = getattr(module, "predict_fn", default_predict_fn)
        self._output = getattr(module, "output_fn", default_output_fn)
        self._transform = getattr(module, "transform_fn", None)
        self._model = _call(model_fn, str(model_dir))

    def answer(self, body: bytes, content_type: str, accept: str) -> tuple[bytes, str]:
        """Return the response to a request and its content type."""
        if self._transform:
            result = _call(self._transform, self._model, body, content_type, accept)
        else:
            data = _call(self._input, _request_body(body, content_type), content_type)
            result = _call(self._output, _call(self._predict, data, self._model), accept)
        content, kind = result if isinstance(result, tuple) else (result, accept or JSON)
        return content.encode() if isinstance(content, str) else bytes(content), kind


def _request_body(body: bytes, content_type: str) -> Any:
    # The toolkit passes text types to input_fn as str.
    is_text = content_type == JSON or content_type.startswith("text/")
    return body.decode() if is_text else body


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a handler, which may take a `context` as one more argument."""
    count = len(inspect.signature(function).parameters)
    return function(*arguments, None) if count == len(arguments) + 1 else function(*arguments)


def _inference_module(model_dir: Path) -> ModuleType:
    code = model_dir / "code"
    program = os.environ.get("SAGEMAKER_PROGRAM", "inference.py").strip('"')
    path = code / program
    submitted = Path(os.environ.get("SAGEMAKER_SUBMIT_DIRECTORY", "").strip('"') or code)
    if not path.exists() and (submitted / program).exists():
        code, path = submitted, submitted / program
    if not path.exists():
        raise SystemExit(f"missing code/{program} in the model{_OWN}")
    sys.path.insert(0, str(code))
    specification = importlib.util.spec_from_file_location("inference", path)
    if specification is None or specification.loader is None:
        raise SystemExit(f"code/{program} is not a Python module")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def serve(directory: Path) -> None:
    """Load the model and serve it until the process is stopped."""
    handlers = Handlers(directory / "model")

    class Requests(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200 if self.path == "/ping" else 404, b"", JSON)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            content_type = self.headers.get("Content-Type", JSON)
            try:
                default = os.environ.get("SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT", JSON)
                answer = handlers.answer(body, content_type, self.headers.get("Accept", default))
            except Exception as error:
                # An exception of a user's handler fails this request, not the server.
                traceback.print_exc()
                self._send(500, f"{type(error).__name__}: {error}".encode(), "text/plain")
            else:
                self._send(200, *answer)

        def _send(self, status: int, body: bytes, content_type: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            sys.stdout.write(format % arguments + "\n")
            sys.stdout.flush()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    whole = directory / "port.tmp"
    whole.write_text(str(server.server_port))
    whole.rename(directory / "port")
    server.serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
