"""An AWS at the wire whose jobs do as they are told, and that remembers every call."""

from __future__ import annotations

import datetime
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from orchestration.local.processes.environment import environment

Answer = tuple[int, dict[str, Any]]


@dataclass
class ScriptedAws:
    """Jobs take the statuses in ``statuses`` (by a part of their name), one for each poll."""

    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    looks: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """The calls of the last look that every run takes."""
    jobs: dict[str, list[str]] = field(default_factory=dict)
    statuses: dict[str, list[str]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    """Why jobs fail, by their names."""
    refusals: dict[str, str] = field(default_factory=dict)
    """Quotas, by the instance type whose jobs are refused, whoever asks."""
    watcher: Callable[[str, dict[str, Any]], None] | None = None
    """Told of each call before it takes effect."""
    objects: dict[str, Any] = field(default_factory=dict)
    faults: list[tuple[str, int, str, bool]] = field(default_factory=list)
    """Operation, HTTP status, code, and whether the call takes effect; each happens once."""
    created: dict[str, float] = field(default_factory=dict)
    """When jobs were created; the others just now."""
    tags: dict[str, Any] = field(default_factory=dict)
    """The tags of jobs, by their names."""
    file_systems: dict[str, list[str]] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    """File systems by the token that they were asked for with."""
    sessions: list[float] = field(default_factory=list)
    """The seconds that the next sessions of roles last; the others last an hour."""
    signers: list[tuple[str, str]] = field(default_factory=list)
    """Every operation, with the access key that signed it."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> ScriptedAws:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def endpoint_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def environment(self) -> dict[str, str]:
        made = environment(self.endpoint_url, "us-east-1")
        return made | {"ORCHESTRATION_TIME_SCALE": "0.001"}

    def clear(self) -> None:
        self.watcher = None
        script = (self.jobs, self.statuses, self.objects, self.file_systems, self.tokens, self.tags)
        self.created.clear()
        told = (self.calls, self.looks, self.signers, self.sessions)
        for kept in (*told, self.faults, self.reasons, self.refusals, *script):
            kept.clear()

    def count(self) -> Counter[str]:
        return Counter(operation for operation, _ in self.calls)

    def of(self, operation: str) -> list[dict[str, Any]]:
        return [request for name, request in self.calls if name == operation]

    def answer(self, operation: str, request: dict[str, Any]) -> Answer:
        if self.watcher is not None:
            self.watcher(operation, request)
        with self._lock:
            kept = self.looks if operation in ("ListTrainingJobs", "ListTags") else self.calls
            kept.append((operation, request))
            for fault in self.faults:
                if fault[0] == operation:
                    self.faults.remove(fault)
                    _, status, code, effective = fault
                    if effective:
                        self._effect(operation, request)
                    return status, _error(code, "injected")
            return self._effect(operation, request)

    def _effect(self, operation: str, request: dict[str, Any]) -> Answer:
        effect: Callable[[dict[str, Any]], Answer] = getattr(self, f"_{operation}")
        return effect(request)

    def _CreateTrainingJob(self, request: dict[str, Any]) -> Answer:
        name = request["TrainingJobName"]
        refused = self.refusals.get(request["ResourceConfig"].get("InstanceType", ""))
        if refused is not None:
            return 400, _error("ResourceLimitExceeded", refused)
        if name in self.jobs:
            return 400, _error("ResourceInUse", "Job name must be unique")
        script = next((s for part, s in self.statuses.items() if part in name), ["Completed"])
        self.jobs[name] = list(script)
        self.tags[name] = request.get("Tags", [])
        return 200, {"TrainingJobArn": f"arn:aws:sagemaker:us-east-1:1:training-job/{name}"}

    def _DescribeTrainingJob(self, request: dict[str, Any]) -> Answer:
        name = request["TrainingJobName"]
        if name not in self.jobs:
            return 400, _error("ValidationException", "Requested resource not found.")
        script = self.jobs[name]
        status = script.pop(0) if len(script) > 1 else script[0]
        return 200, {
            "TrainingJobName": name,
            "TrainingJobArn": f"arn:aws:sagemaker:us-east-1:1:training-job/{name}",
            "TrainingJobStatus": status,
            "FailureReason": self.reasons.get(name, "AlgorithmError: boom"),
            "ModelArtifacts": {"S3ModelArtifacts": f"s3://bucket/{name}/model.tar.gz"},
            "CreationTime": self.created.get(name, time.time()),
            "FinalMetricDataList": [
                {"MetricName": "accuracy", "Value": 0.75, "Timestamp": 1_700_000_000}
            ],
        }

    def _StopTrainingJob(self, request: dict[str, Any]) -> Answer:
        self.jobs[request["TrainingJobName"]] = ["Stopped"]
        return 200, {}

    def _ListTrainingJobs(self, request: dict[str, Any]) -> Answer:
        names = [n for n in self.jobs if request.get("NameContains", "") in n]
        running = [n for n in names if self.jobs[n][0] == request["StatusEquals"]]
        arn = "arn:aws:sagemaker:us-east-1:1:training-job/"
        page = [{"TrainingJobName": n, "TrainingJobArn": f"{arn}{n}"} for n in running]
        return 200, {"TrainingJobSummaries": page}

    def _AssumeRole(self, request: dict[str, Any]) -> Answer:
        seconds = self.sessions.pop(0) if self.sessions else 3600
        expires = datetime.datetime.fromtimestamp(time.time() + seconds, datetime.UTC)
        fields = {
            "AccessKeyId": f"session-{len(self.of('AssumeRole'))}",
            "SecretAccessKey": "secret",
            "SessionToken": "token",
            "Expiration": expires.isoformat(),
        }
        return 200, {"Credentials": "".join(f"<{k}>{v}</{k}>" for k, v in fields.items())}

    def _Publish(self, request: dict[str, Any]) -> Answer:
        return 200, {"MessageId": "1"}

    def _ListTags(self, request: dict[str, Any]) -> Answer:
        return 200, {"Tags": self.tags.get(request["ResourceArn"].rpartition("/")[2], [])}

    def _CreateFileSystem(self, request: dict[str, Any]) -> Answer:
        token = request.get("ClientRequestToken", "")
        identity = self.tokens.setdefault(token, f"fs-0123456789abcdef{len(self.tokens)}")
        self.file_systems.setdefault(identity, ["CREATING", "AVAILABLE"])
        return 200, {"FileSystem": {"FileSystemId": identity, "DNSName": f"{identity}.fsx"}}

    def _DescribeFileSystems(self, request: dict[str, Any]) -> Answer:
        [identity] = request["FileSystemIds"]
        script = self.file_systems.get(identity)
        if not script:
            return 400, _error("FileSystemNotFound", f"{identity} not found")
        status = script.pop(0) if len(script) > 1 or script[0] == "DELETING" else script[0]
        return 200, {"FileSystems": [{"FileSystemId": identity, "Lifecycle": status}]}

    def _DeleteFileSystem(self, request: dict[str, Any]) -> Answer:
        self.file_systems[request["FileSystemId"]] = ["DELETING"]
        return 200, {"FileSystemId": request["FileSystemId"], "Lifecycle": "DELETING"}

    def _UpdateEndpoint(self, request: dict[str, Any]) -> Answer:
        return 400, _error("ValidationException", "Could not find endpoint")

    def _GetObject(self, request: dict[str, Any]) -> Answer:
        if request["uri"] not in self.objects:
            return 404, {}
        return 200, self.objects[request["uri"]]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        aws = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # headers and body in one packet

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                target = self.headers["X-Amz-Target"]
                key = self.headers["Authorization"].partition("Credential=")[2].partition("/")[0]
                if target is None:
                    form = dict(parse_qsl(body.decode()))
                    status, answer = aws.answer(form["Action"], form)
                    self._send_text(status, _xml(form["Action"], answer))
                else:
                    operation = target.rpartition(".")[2]
                    aws.signers.append((operation, key))
                    self._send(*aws.answer(operation, json.loads(body)))

            def do_GET(self) -> None:
                uri = "s3:/" + unquote(urlsplit(self.path).path)
                self._send(*aws.answer("GetObject", {"uri": uri}))

            def _send(self, status: int, document: dict[str, Any]) -> None:
                self._send_text(status, json.dumps(document))

            def _send_text(self, status: int, text: str) -> None:
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/x-amz-json-1.1")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                self.wfile.flush()

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def _error(code: str, message: str) -> dict[str, Any]:
    return {"__type": code, "message": message}


def _xml(operation: str, answer: dict[str, str]) -> str:
    """An answer of the services whose requests are forms."""
    fields = "".join(f"<{name}>{value}</{name}>" for name, value in answer.items())
    result = f"<{operation}Result>{fields}</{operation}Result>"
    return f"<{operation}Response>{result}</{operation}Response>"
